"""A guest's own program, and no friend of its kernel: runs in a guest, as nobody, with the standard library alone.

Whatever a program does, it can see the stub beside it, which catches its system calls for the kernel, and jump into it
(docs/decisions/confinement.md). `hostile_program.py WAY [MARK]` tries one way, and says on a line of its own what
came of it.
"""

import ctypes
import mmap
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path

PAGE = mmap.PAGESIZE
NOBODY = 65534
SYSCALL = b"\x0f\x05"
MEMORY = 0x1000_0000_0000
"""Where memory that is not this program's would be mapped."""
REACHED = 77
STILL = int.from_bytes(b"minigts!", "little")
"""What a register holds when the frame of a call is looked for."""
FUTEX, RECVMSG, MMAP, CLOSE, SIGRETURN = 202, 47, 9, 3, 15
SIGALRM, SIGSEGV, SIGSYS = 14, 11, 31
R15, RSP, RIP, ERROR, TRAP, ADDRESS = 7, 15, 16, 19, 20, 22
"""Places in the registers of a signal's frame (mcontext_t); which signals it blocks follows 32 words."""
ORDERED, RESTART, FUTEX_WORD, SIGNAL = 0x8, 0xF10, 0xF14, 0xF18
"""Where the stub of Linux 7.2 had, unmended: how many calls it is to make, whose turn it is, and what it has caught."""

# call(words): makes the call of words[1] with the six arguments after it, at the address words[0].
CALL = "4989fb498b4308498b7b10498b7318498b53204d8b53284d8b43304d8b4b3841ff23"
# feign(writes, count, futex, gadget, message): makes `count` writes, each an address and four bytes, of which the last
# says that this program has stopped; wakes the kernel at `gadget`, and takes what it sends to one that has stopped.
FEIGN = (
    "5355415441554889d34889cd4d89c4488b078b4f0889084883c71048ffce75efb8ca0000004889dfbe01000000ba01000000ffd549c7c500ca9a3b"
    "f39049ffcd7405833b0075f4b82f00000031ff4c89e631d2ffd5415d415c5d5bc3"
)
# jump(words, writes, count): makes a call, then the writes, and goes to words[0] with the registers that follow it:
# rsp, rax, rdi, rsi, rdx, r10, r8, r9. Returns if that call seems to have returned once more.
JUMP = (
    "535541544155415641574889fb4889f54989d44889634849bf6d696e6967747321b8270000000f0548ff435048837b5001753d4d85e47412488b45"
    "008b4d0889084883c51049ffccebe94989db498b6308498b4310498b7b18498b7320498b53284d8b53304d8b43384d8b4b4041ff23488b6348415f"
    "415e415d415c5d5bc3"
)


def code(hexadecimal: str, *kinds: type) -> Callable[..., int]:
    """A function of these machine instructions."""
    place = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    place.write(bytes.fromhex(hexadecimal))
    held.append(place)
    return ctypes.CFUNCTYPE(ctypes.c_long, *kinds)(ctypes.addressof(ctypes.c_char.from_buffer(place)))


held: list[object] = []
"""What must stay where it is."""


def words(*numbers: int) -> "ctypes.Array[ctypes.c_uint64]":
    """Eight bytes each, as many as given."""
    made = (ctypes.c_uint64 * len(numbers))(*(number & 0xFFFF_FFFF_FFFF_FFFF for number in numbers))
    held.append(made)
    return made


def stub_data() -> int:
    """Where stub and kernel share memory. The vDSO's last word leads there; the stub's code lies before."""
    auxiliary = struct.iter_unpack("QQ", Path("/proc/self/auxv").read_bytes())
    vdso = next(value for kind, value in auxiliary if kind == 33)
    (clock,) = struct.unpack("Q", ctypes.string_at(vdso + PAGE - 8, 8))
    return clock & -PAGE


def places(what: bytes) -> list[int]:
    """All addresses in the stub's code at which these bytes are."""
    text = ctypes.string_at(DATA - PAGE, PAGE)
    return [DATA - PAGE + at for at in range(PAGE - len(what)) if text[at : at + len(what)] == what]


def registers() -> int:
    """The address of the registers of the last call, in the stub's second page."""
    for _ in range(10):  # a fault meanwhile has registers of its own
        kept = words(*[0] * 11)
        kept[10] = 1  # so that it returns after its call
        jump(kept, None, 0)
        found = ctypes.string_at(DATA + PAGE, PAGE).rfind(struct.pack("Q", STILL))
        if found >= 0:
            return DATA + PAGE + found - 8 * R15
    raise SystemExit("NO FRAME")


def written(*pairs: tuple[int, int]) -> "tuple[ctypes.Array[ctypes.c_uint64], int]":
    """Four bytes at each address."""
    return words(*(number for pair in pairs for number in pair)), len(pairs)


def reach() -> int:
    """How much memory the guest has at least, in bytes: so much of it is looked at."""
    return int(Path("/proc/meminfo").read_text().split()[1]) << 10 & -PAGE


def changed(mark: bytes) -> int:
    """How often the mark was in the memory at MEMORY, which is not ours; it is written over."""
    count = 0
    for page in range(MEMORY, MEMORY + reach(), PAGE):
        at = ctypes.string_at(page, PAGE).find(mark)
        if at >= 0:
            ctypes.memmove(page + at, b"HOSTILE!", 8)
            count += 1
    return count


def feigned_fault(mark: bytes) -> str:
    """Claim to have stopped at a fault, go on, and take the descriptor of memory that the kernel sends to mend it."""
    gadgets = places(SYSCALL + b"\xc3")
    if not gadgets:
        return "NO GADGET"
    fresh, frame = mmap.mmap(-1, PAGE), registers()
    fault = ctypes.addressof(ctypes.c_char.from_buffer(fresh))
    control, byte = words(*[0] * 8), words(0)
    vector = words(ctypes.addressof(byte), 1)
    message = words(0, 0, ctypes.addressof(vector), 1, ctypes.addressof(control), 64, 0)
    told = [
        (frame + 8 * place + part, number >> 8 * part & 0xFFFFFFFF)
        for place, number in ((ERROR, 6), (TRAP, 14), (ADDRESS, fault))
        for part in (0, 4)
    ]
    writes, count = written(*told, (DATA + SIGNAL, SIGSEGV), (DATA + FUTEX_WORD, 1))
    feign(writes, count, DATA + FUTEX_WORD, gadgets[-1], ctypes.addressof(message))
    ctypes.memset(DATA + ORDERED, 0, 4)
    descriptor = control[2] & 0xFFFFFFFF
    if not descriptor:
        return "NOTHING CAME"
    got = call(words(gadgets[-1], MMAP, MEMORY, reach(), mmap.PROT_READ | mmap.PROT_WRITE, 0x11, descriptor, 0))
    return f"CHANGED {changed(mark)}" if got == MEMORY else f"NOT MAPPED {got:#x}"


def reaches(tried: Callable[[], None]) -> bool:
    """Whether a child of ours that tries something can read at MEMORY afterwards, whatever else becomes of it."""
    child = os.fork()
    if not child:
        tried()
        ctypes.string_at(MEMORY, 1)
        os._exit(REACHED)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == REACHED


def strange_orders(mark: bytes) -> str:
    """Jump to each call of the stub's, as each call that it makes, with orders and a fault of our own making."""
    frame = registers()
    order = struct.pack("QQQiiQ", MEMORY, PAGE, 0, 1, 3, 1)
    forged = bytearray(order * (PAGE // len(order) + 1))[: PAGE - 16]
    count = found = 0
    for at in places(SYSCALL):
        for number in (SIGRETURN, MMAP, CLOSE):
            first = frame - 40 if number == SIGRETURN else MEMORY

            def tried(at: int = at, number: int = number, first: int = first) -> None:
                ctypes.memmove(DATA + 16, bytes(forged), len(forged))
                ctypes.memmove(DATA + ORDERED, b"\1\0\0\0", 4)
                writes, many = written((frame + 8 * ERROR, 6), (frame + 8 * TRAP, 14))
                jump(words(at, frame - 40, number, first, PAGE, 3, 0x11, 1, 0, 0, 0), writes, many)

            count += 1
            found += reaches(tried)
    return f"REACHED {found} of {count}"


def deaf(mark: bytes) -> str:
    """Go on with a frame of our own, in which no alarm is heard, and never stop."""
    frame = registers()
    gadget = places(b"\xb8\x0f\0\0\0" + SYSCALL)[-1]
    own = ctypes.create_string_buffer(ctypes.string_at(frame - 40, 512), 512)
    place = ctypes.addressof(own)
    struct.pack_into("Q", own, 40 + 8 * RIP, ctypes.cast(spin, ctypes.c_void_p).value)
    struct.pack_into("Q", own, 40 + 256, 1 << SIGALRM - 1)
    jump(words(gadget, place, SIGRETURN, *[0] * 8), None, 0)
    return "RETURNED"


def ordered_to_wait(mark: bytes) -> str:
    """Have the kernel find that it has told the stub to wait, which it has not."""
    ctypes.memmove(DATA + RESTART, b"\1", 1)
    os.getppid()
    return "WENT ON"


def main(way: str, mark: str = "") -> None:
    tried = {each.__name__: each for each in (feigned_fault, strange_orders, deaf, ordered_to_wait)}[way]
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    os.write(1, f"{tried(mark.encode())}\n".encode())


DATA = stub_data()
call = code(CALL, ctypes.c_void_p)
feign = code(FEIGN, ctypes.c_void_p, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
jump = code(JUMP, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
spin = code("ebfe")
main(*sys.argv[1:])
