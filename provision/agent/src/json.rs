//! Reads a request, which is JSON (RFC 8259). Its strings become the bytes that a program is started with.
//!
//! Python writes a byte that is no UTF-8 as half a surrogate pair, U+DC80 to U+DCFF (PEP 383). It becomes that byte again here.

#[derive(Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Bytes(Vec<u8>),
    List(Vec<Value>),
    Object(Vec<(Vec<u8>, Value)>),
}

impl Value {
    /// Read a value. None if the text is no JSON, or is nested deeper than DEEPEST.
    pub fn read(text: &[u8]) -> Option<Value> {
        let mut reader = Reader {
            text,
            at: 0,
            depth: 0,
        };
        let value = reader.value()?;
        reader.space();
        (reader.at == text.len()).then_some(value)
    }

    /// The member of that name; the last one, if there are more. None if this is no object, or has no such member.
    pub fn of(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members
                .iter()
                .rev()
                .find(|(key, _)| key == name.as_bytes())
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

/// How deep values may be nested.
const DEEPEST: usize = 16;

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Option<Value> {
        self.space();
        match self.text.get(self.at)? {
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            b'"' => self.string().map(Value::Bytes),
            b'[' => self.nested(Self::list),
            b'{' => self.nested(Self::object),
            _ => self.number(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Option<Value>) -> Option<Value> {
        self.at += 1;
        self.depth += 1;
        let value = if self.depth > DEEPEST {
            None
        } else {
            read(self)
        };
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Option<Value> {
        let mut values = Vec::new();
        if self.takes(b']') {
            return Some(Value::List(values));
        }
        loop {
            values.push(self.value()?);
            if !self.takes(b',') {
                return self.takes(b']').then_some(Value::List(values));
            }
        }
    }

    fn object(&mut self) -> Option<Value> {
        let mut members = Vec::new();
        if self.takes(b'}') {
            return Some(Value::Object(members));
        }
        loop {
            self.space();
            let name = self.string()?;
            self.takes(b':').then_some(())?;
            members.push((name, self.value()?));
            if !self.takes(b',') {
                return self.takes(b'}').then_some(Value::Object(members));
            }
        }
    }

    fn number(&mut self) -> Option<Value> {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(|byte| is_part(byte)).count();
        self.at += length;
        std::str::from_utf8(&rest[..length])
            .ok()?
            .parse()
            .ok()
            .map(Value::Number)
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        (self.text.get(self.at)? == &b'"').then_some(())?;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            match byte {
                b'"' => return Some(bytes),
                b'\\' => self.escaped(&mut bytes)?,
                _ => bytes.push(byte),
            }
        }
    }

    fn escaped(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        let byte = *self.text.get(self.at)?;
        self.at += 1;
        match byte {
            b'"' | b'\\' | b'/' => bytes.push(byte),
            b'b' => bytes.push(8),
            b'f' => bytes.push(12),
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'u' => {
                let first = self.four()?;
                match first {
                    0xDC80..=0xDCFF => bytes.push((first - 0xDC00) as u8),
                    0xD800..=0xDBFF => {
                        self.text[self.at..].starts_with(b"\\u").then_some(())?;
                        self.at += 2;
                        let second = self.four()?;
                        (0xDC00..=0xDFFF).contains(&second).then_some(())?;
                        push(
                            bytes,
                            0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00),
                        )?;
                    }
                    _ => push(bytes, first)?,
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The number that the next four hexadecimal digits stand for.
    fn four(&mut self) -> Option<u32> {
        let digits = std::str::from_utf8(self.text.get(self.at..self.at + 4)?).ok()?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    fn word(&mut self, word: &str, value: Value) -> Option<Value> {
        self.text[self.at..]
            .starts_with(word.as_bytes())
            .then_some(())?;
        self.at += word.len();
        Some(value)
    }

    /// Whether that byte comes next, behind any space. If so, it is taken.
    fn takes(&mut self, byte: u8) -> bool {
        self.space();
        let is_there = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}

/// Append a code point in UTF-8. None if there is no such code point.
fn push(bytes: &mut Vec<u8>, code: u32) -> Option<()> {
    bytes.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read() {
        let request = Value::read(
            br#"{"argv": ["sh", "-c", "a \"b\"\n"], "timeout_s": 2.5, "terminal": null}"#,
        )
        .unwrap();
        let words: Vec<_> = request
            .of("argv")
            .unwrap()
            .list()
            .unwrap()
            .iter()
            .map(|each| each.bytes().unwrap())
            .collect();
        assert_eq!(words, [&b"sh"[..], b"-c", b"a \"b\"\n"]);
        assert_eq!(request.of("timeout_s").unwrap().number(), Some(2.5));
        assert_eq!(request.of("terminal"), Some(&Value::Null));
        assert_eq!(request.of("other"), None);
    }

    #[test]
    fn bytes_come_out_as_they_went_in() {
        let shown =
            |text: &[u8]| Value::read(text).and_then(|value| value.bytes().map(<[u8]>::to_vec));
        assert_eq!(
            shown(br#""\u00e4\ud83d\ude00""#),
            Some("ä😀".as_bytes().to_vec())
        );
        assert_eq!(shown(br#""a\udcff\udc80""#), Some(b"a\xff\x80".to_vec()));
        assert_eq!(shown(br#""\u0000""#), Some(vec![0]));
    }

    #[test]
    fn what_is_no_json_is_none() {
        for text in [
            "",
            "{",
            "[1,]",
            "[1 2]",
            "{\"a\" 1}",
            "\"\\x\"",
            "\"\\ud800\"",
            "nul",
            "1 2",
            &"[".repeat(100),
        ] {
            assert_eq!(Value::read(text.as_bytes()), None, "{text}");
        }
    }
}
