// Judges a history of a register by Porcupine: whether its reads, writes and compare-and-sets are linearizable.
//
//	checker SECONDS [FIGURE.html]
//
// Standard input has a line of JSON for each operation (see `operation`); standard output gets one line of JSON (see
// `verdict`). SECONDS is how long it may take. With FIGURE.html Porcupine's own picture of the history is written.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"
)

// An operation of a client on the register of a key. Times are nanoseconds of one clock. `read` has its result in Value, nil
// where the register is empty; `cas` writes Value if the register holds From, and Held says whether it did.
type operation struct {
	Client   int     `json:"client"`
	Key      string  `json:"key"`
	Op       string  `json:"op"`
	Value    *string `json:"value"`
	From     *string `json:"from"`
	Held     bool    `json:"held"`
	Sent     int64   `json:"sent"`
	Answered int64   `json:"answered"`
	// `ok`, `fail`: it was not done; `info`: nobody knows whether it was done.
	Answer string `json:"answer"`
}

type verdict struct {
	// `linearizable`, `not linearizable`, or `unknown`: the time was up.
	Verdict string `json:"verdict"`
	// How many operations count: all but those that were not done, and reads without an answer.
	Operations int `json:"operations"`
	// The keys whose operations are not linearizable.
	Keys []string `json:"keys"`
}

func same(one, other *string) bool {
	return one == nil && other == nil || one != nil && other != nil && *one == *other
}

func shown(value *string) string {
	if value == nil {
		return "nothing"
	}
	return *value
}

var register = porcupine.Model{
	Init: func() interface{} { return (*string)(nil) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		holds, asked := state.(*string), input.(operation)
		switch {
		case asked.Op == "write":
			return true, asked.Value
		case asked.Op == "read":
			return same(holds, asked.Value), holds
		case asked.Answer == "info":
			// It may have been done or not.
			if same(holds, asked.From) {
				return true, asked.Value
			}
			return true, holds
		case asked.Held:
			return same(holds, asked.From), asked.Value
		default:
			return !same(holds, asked.From), holds
		}
	},
	Equal: func(one, other interface{}) bool { return same(one.(*string), other.(*string)) },
	DescribeOperation: func(input, output interface{}) string {
		asked := input.(operation)
		switch asked.Op {
		case "read":
			return "read " + shown(asked.Value)
		case "write":
			return "write " + shown(asked.Value)
		default:
			return fmt.Sprintf("cas %s to %s: %t", shown(asked.From), shown(asked.Value), asked.Held)
		}
	},
	DescribeState: func(state interface{}) string { return shown(state.(*string)) },
}

// Of each key, the operations that count. One whose answer nobody knows may have been done at any time after it was sent.
func read(input io.Reader) (map[string][]porcupine.Operation, int, error) {
	byKey, count := map[string][]porcupine.Operation{}, 0
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 1<<20)
	for number := 1; lines.Scan(); number++ {
		var one operation
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", number, err)
		}
		if one.Op != "read" && one.Op != "write" && one.Op != "cas" {
			return nil, 0, fmt.Errorf("line %d: no operation %q: read, write or cas", number, one.Op)
		}
		if one.Answer == "fail" || one.Answer == "info" && one.Op == "read" {
			continue
		}
		if one.Answer == "info" {
			one.Answered = math.MaxInt64
		}
		if one.Answered < one.Sent {
			return nil, 0, fmt.Errorf("line %d: it was answered before it was sent", number)
		}
		count++
		byKey[one.Key] = append(byKey[one.Key], porcupine.Operation{
			ClientId: one.Client, Input: one, Call: one.Sent, Return: one.Answered,
		})
	}
	return byKey, count, lines.Err()
}

func judge(byKey map[string][]porcupine.Operation, count int, limit time.Duration, figure string) (verdict, error) {
	found, until := verdict{Verdict: "linearizable", Operations: count, Keys: []string{}}, time.Now().Add(limit)
	keys := make([]string, 0, len(byKey))
	for key := range byKey {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	drawn := false
	for _, key := range keys {
		left := max(time.Until(until), time.Millisecond)
		result, info := porcupine.CheckOperationsVerbose(register, byKey[key], left)
		if result == porcupine.Illegal {
			found.Keys = append(found.Keys, key)
		}
		if result == porcupine.Unknown && found.Verdict == "linearizable" {
			found.Verdict = "unknown"
		}
		if result == porcupine.Illegal && figure != "" && !drawn {
			drawn = true
			if err := porcupine.VisualizePath(register, info, figure); err != nil {
				return found, err
			}
		}
	}
	if len(found.Keys) > 0 {
		found.Verdict = "not linearizable"
	}
	return found, nil
}

func run() error {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		return fmt.Errorf("usage: checker SECONDS [FIGURE.html]")
	}
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		return err
	}
	figure := ""
	if len(os.Args) == 3 {
		figure = os.Args[2]
	}
	byKey, count, err := read(os.Stdin)
	if err != nil {
		return err
	}
	found, err := judge(byKey, count, time.Duration(seconds*float64(time.Second)), figure)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}
