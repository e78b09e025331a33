"""The function of Python that calls routines, as LLVM IR: what `ocn_runtime.calls` describes and sets up.

    void ocn_python_setup(ptr interpreter)                               says once where Python's functions and types are
    ptr  ocn_python_call(ptr self, ptr args, i64 count, ptr names)       a function of Python (METH_FASTCALL | METH_KEYWORDS)

The text below is IR with three abbreviations, which know the fields of the structures there and the functions of Python:

    %x = get ptr %call Call.words          loads a field
    put i64 %x %words Words.seed           stores it
    %x = python ptr tuple_new(i64 %n)      calls a function of `calls.FUNCTIONS`; `%python` is the `Interpreter`

A function here gives `%python` itself where nothing was done and the general function is to do it, null where there is an exception.

While the lock is held and `busy` is set nobody else uses the routine's table and what belongs to the call, whatever code of Python runs
in between (finalizers, handlers of signals); so arrays for results are made first, and what is looked at after that stays as it is
until the routine has run.
"""

from __future__ import annotations

import ctypes
import functools
import re

from ocn_runtime import calls
from ocn_runtime.calls import LAYOUT, Call, Head, Interpreter, Operand
from ocn_runtime.cpu import Words

_TEXT = """
@interpreter = internal global ptr null

define void @ocn_python_setup(ptr %python) #1 {
  store ptr %python, ptr @interpreter, align 8
  ret void
}

define ptr @ocn_python_call(ptr %self, ptr %args, i64 %count, ptr %names) #1 {
entry:
  %type = alloca ptr
  %value = alloca ptr
  %trace = alloca ptr
  %python = load ptr, ptr @interpreter, align 8
  %number = python ptr tuple_item(ptr %self, i64 0)
  %head = python ptr int_as_pointer(ptr %number)
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %lock, label %named
named:
  %size = python i64 tuple_size(ptr %names)
  %single = icmp eq i64 %size, 1
  br i1 %single, label %only, label %general
only:
  %name = python ptr tuple_item(ptr %names, i64 0)
  %known = get ptr %python Interpreter.out_name
  %is_out = icmp eq ptr %name, %known
  br i1 %is_out, label %with_out, label %general
with_out:
  %op = getelementptr ptr, ptr %args, i64 %count
  %given = load ptr, ptr %op, align 8
  %none = get ptr %python Interpreter.none
  %is_none = icmp eq ptr %given, %none
  %some = select i1 %is_none, ptr null, ptr %given
  br label %lock
lock:
  %out = phi ptr [ null, %entry ], [ %some, %with_out ]
  %acquire = get ptr %head Head.acquire
  %acquired = python ptr call(ptr %acquire)
  %interrupted = icmp eq ptr %acquired, null
  br i1 %interrupted, label %failed, label %locked
locked:
  python void drop(ptr %acquired)
  %result = call ptr @locked(ptr %python, ptr %head, ptr %args, i64 %count, ptr %out)
  %release = get ptr %head Head.release
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %raise, label %unlock
raise:
  ; No function is called while there is an exception.
  python void fetch_error(ptr %type, ptr %value, ptr %trace)
  %unlocked = python ptr call(ptr %release)
  python void drop(ptr %unlocked)
  %t = load ptr, ptr %type, align 8
  %v = load ptr, ptr %value, align 8
  %b = load ptr, ptr %trace, align 8
  python void restore_error(ptr %t, ptr %v, ptr %b)
  ret ptr null
unlock:
  %released = python ptr call(ptr %release)
  %bad = icmp eq ptr %released, null
  br i1 %bad, label %failed, label %free
free:
  python void drop(ptr %released)
  %left = icmp eq ptr %result, %python
  br i1 %left, label %general, label %done
done:
  ret ptr %result
failed:
  ret ptr null
general:
  %made = call ptr @general(ptr %python, ptr %head, ptr %args, i64 %count, ptr %names)
  ret ptr %made
}

; The general function with the same arguments.
define internal ptr @general(ptr %python, ptr %head, ptr %args, i64 %count, ptr %names) #1 {
entry:
  %function = get ptr %head Head.general
  %none = icmp eq ptr %names, null
  br i1 %none, label %ready, label %named
named:
  %new = python ptr dict_new()
  %no_dict = icmp eq ptr %new, null
  br i1 %no_dict, label %failed, label %filled
filled:
  %size = python i64 tuple_size(ptr %names)
  br label %next
next:
  %i = phi i64 [ 0, %filled ], [ %i2, %set ]
  %more = icmp ult i64 %i, %size
  br i1 %more, label %set, label %ready
set:
  %name = python ptr tuple_item(ptr %names, i64 %i)
  %place = add i64 %count, %i
  %vp = getelementptr ptr, ptr %args, i64 %place
  %value = load ptr, ptr %vp, align 8
  %status = python i32 dict_set(ptr %new, ptr %name, ptr %value)
  %i2 = add i64 %i, 1
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %lost, label %next
ready:
  %dict = phi ptr [ null, %entry ], [ %new, %next ]
  %result = python ptr call_with(ptr %function, ptr %args, i64 %count, ptr %dict)
  python void drop(ptr %dict)
  ret ptr %result
lost:
  python void drop(ptr %new)
  ret ptr null
failed:
  ret ptr null
}

; With the lock: whether there is a call for so many arguments that nobody is in the middle of, and its threads are there.
define internal ptr @locked(ptr %python, ptr %head, ptr %args, i64 %count, ptr %out) #1 {
entry:
  %call = get ptr %head Head.call
  %none = icmp eq ptr %call, null
  br i1 %none, label %leave, label %prepared
prepared:
  %wanted = get i64 %call Call.input_count
  %words = get ptr %call Call.words
  %busy = get i64 %words Words.busy
  %mine = get i64 %words Words.generation
  %gp = get ptr %call Call.generation
  %generation = load i64, ptr %gp, align 8
  %fits = icmp eq i64 %count, %wanted
  %idle = icmp eq i64 %busy, 0
  %current = icmp eq i64 %mine, %generation
  %both = and i1 %fits, %idle
  %all = and i1 %both, %current
  br i1 %all, label %begin, label %leave
begin:
  put i64 1 %words Words.busy
  %fresh = icmp eq ptr %out, null
  br i1 %fresh, label %make, label %into
make:
  %made = call ptr @made(ptr %python, ptr %call, ptr %args)
  br label %end
into:
  %given = call ptr @into(ptr %python, ptr %call, ptr %args, ptr %out)
  br label %end
end:
  %result = phi ptr [ %made, %make ], [ %given, %into ]
  put i64 0 %words Words.busy
  ret ptr %result
leave:
  ret ptr %python
}

; A call whose results are made here.
define internal ptr @made(ptr %python, ptr %call, ptr %args) #1 {
entry:
  %pair = alloca [2 x ptr]
  %count = get i64 %call Call.result_count
  %results = get ptr %call Call.results
  %targets = get ptr %call Call.targets
  %several = get i64 %call Call.as_tuple
  %as_tuple = icmp ne i64 %several, 0
  br i1 %as_tuple, label %wrap, label %making
wrap:
  %new = python ptr tuple_new(i64 %count)
  %no_tuple = icmp eq ptr %new, null
  br i1 %no_tuple, label %failed, label %making
making:
  %tuple = phi ptr [ null, %entry ], [ %new, %wrap ]
  br label %next
next:
  %k = phi i64 [ 0, %making ], [ %k2, %set ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %make, label %look
make:
  %o = getelementptr [SIZE_OF_OPERAND x i8], ptr %results, i64 %k
  %maker = get ptr %o Operand.make
  %number = icmp eq ptr %maker, null
  br i1 %number, label %set, label %array
array:
  %shape = get ptr %o Operand.shape
  %dtype = get ptr %o Operand.dtype
  store ptr %shape, ptr %pair, align 8
  %second = getelementptr i8, ptr %pair, i64 8
  store ptr %dtype, ptr %second, align 8
  %a = python ptr call_with(ptr %maker, ptr %pair, i64 2, ptr null)
  %no_array = icmp eq ptr %a, null
  br i1 %no_array, label %undo, label %set
set:
  %target = phi ptr [ null, %make ], [ %a, %array ]
  %tp = getelementptr ptr, ptr %targets, i64 %k
  store ptr %target, ptr %tp, align 8
  %k2 = add i64 %k, 1
  br label %next
look:
  %ready = call i1 @ready(ptr %python, ptr %call, ptr %args)
  br i1 %ready, label %run, label %undo
undo:
  ; All that was made up to here.
  %result = phi ptr [ null, %array ], [ %python, %look ]
  call void @drop(ptr %python, ptr %targets, i64 0, i64 %k)
  python void drop(ptr %tuple)
  ret ptr %result
run:
  call void @run(ptr %python, ptr %call)
  br label %giving
giving:
  %i = phi i64 [ 0, %run ], [ %i2, %append ]
  %any = icmp ult i64 %i, %count
  br i1 %any, label %give, label %given
give:
  %ip = getelementptr ptr, ptr %targets, i64 %i
  %made = load ptr, ptr %ip, align 8
  %i2 = add i64 %i, 1
  %is_number = icmp eq ptr %made, null
  br i1 %is_number, label %convert, label %one
convert:
  %q = getelementptr [SIZE_OF_OPERAND x i8], ptr %results, i64 %i
  %converter = get ptr %q Operand.convert
  %converted = python ptr call(ptr %converter)
  %no_number = icmp eq ptr %converted, null
  br i1 %no_number, label %lost, label %one
one:
  %x = phi ptr [ %made, %give ], [ %converted, %convert ]
  br i1 %as_tuple, label %append, label %alone
alone:
  ret ptr %x
append:
  %status = python i32 tuple_set(ptr %tuple, i64 %i, ptr %x)
  br label %giving
lost:
  call void @drop(ptr %python, ptr %targets, i64 %i2, i64 %count)
  python void drop(ptr %tuple)
  ret ptr null
given:
  br i1 %as_tuple, label %together, label %nothing
together:
  ret ptr %tuple
nothing:
  %none = get ptr %python Interpreter.none
  python void hold(ptr %none)
  ret ptr %none
failed:
  ret ptr null
}

; References that are held by the targets from `from` to before `to`; null is none.
define internal void @drop(ptr %python, ptr %targets, i64 %from, i64 %to) #1 {
entry:
  br label %next
next:
  %k = phi i64 [ %from, %entry ], [ %k2, %one ]
  %more = icmp ult i64 %k, %to
  br i1 %more, label %one, label %done
one:
  %tp = getelementptr ptr, ptr %targets, i64 %k
  %t = load ptr, ptr %tp, align 8
  python void drop(ptr %t)
  %k2 = add i64 %k, 1
  br label %next
done:
  ret void
}

; A call whose results go into `out`: an array, or a tuple or list of them.
define internal ptr @into(ptr %python, ptr %call, ptr %args, ptr %out) #1 {
entry:
  %count = get i64 %call Call.result_count
  %targets = get ptr %call Call.targets
  %type = get ptr %out Object.type
  %array_type = get ptr %python Interpreter.array_type
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %array, label %several
array:
  %single = icmp eq i64 %count, 1
  br i1 %single, label %one, label %leave
one:
  store ptr %out, ptr %targets, align 8
  br label %look
several:
  %tuple_type = get ptr %python Interpreter.tuple_type
  %is_tuple = icmp eq ptr %type, %tuple_type
  br i1 %is_tuple, label %tuple, label %perhaps
perhaps:
  %list_type = get ptr %python Interpreter.list_type
  %is_list = icmp eq ptr %type, %list_type
  br i1 %is_list, label %list, label %leave
tuple:
  python void hold(ptr %out)
  br label %held
list:
  ; Another thread may change the list while the routine runs.
  %copy = python ptr list_as_tuple(ptr %out)
  %no_copy = icmp eq ptr %copy, null
  br i1 %no_copy, label %failed, label %held
held:
  %arrays = phi ptr [ %out, %tuple ], [ %copy, %list ]
  %size = python i64 tuple_size(ptr %arrays)
  %fits = icmp eq i64 %size, %count
  br i1 %fits, label %next, label %undo
next:
  %k = phi i64 [ 0, %held ], [ %k2, %fill ]
  %more = icmp ult i64 %k, %count
  br i1 %more, label %fill, label %look
fill:
  %a = python ptr tuple_item(ptr %arrays, i64 %k)
  %tp = getelementptr ptr, ptr %targets, i64 %k
  store ptr %a, ptr %tp, align 8
  %k2 = add i64 %k, 1
  br label %next
look:
  %mine = phi ptr [ null, %one ], [ %arrays, %next ]
  %ready = call i1 @ready(ptr %python, ptr %call, ptr %args)
  br i1 %ready, label %run, label %undo
run:
  call void @run(ptr %python, ptr %call)
  python void hold(ptr %out)
  br label %undo
undo:
  %holding = phi ptr [ %arrays, %held ], [ %mine, %look ], [ %mine, %run ]
  %result = phi ptr [ %python, %held ], [ %python, %look ], [ %out, %run ]
  python void drop(ptr %holding)
  ret ptr %result
leave:
  ret ptr %python
failed:
  ret ptr null
}

; Runs what stands in the table, without Python's lock.
define internal void @run(ptr %python, ptr %call) #1 {
  %words = get ptr %call Call.words
  %seed = get i64 %call Call.seed
  put i64 %seed %words Words.seed
  %cp = get ptr %call Call.counter
  %calls = load i64, ptr %cp, align 8
  put i64 %calls %words Words.calls
  %more = add i64 %calls, 1
  store i64 %more, ptr %cp, align 8
  %record = get ptr %call Call.record
  %state = python ptr save_thread()
  call void @ocn_call(ptr %record)
  python void restore_thread(ptr %state)
  ret void
}

; Whether the arguments and targets are what the routine takes, and results go where nothing else lies; the table has them then.
define internal i1 @ready(ptr %python, ptr %call, ptr %args) #1 {
entry:
  %inputs = get ptr %call Call.inputs
  %input_count = get i64 %call Call.input_count
  %results = get ptr %call Call.results
  %result_count = get i64 %call Call.result_count
  %targets = get ptr %call Call.targets
  %ranges = get ptr %call Call.ranges
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i2, %taken ]
  %any = icmp ult i64 %i, %input_count
  br i1 %any, label %take, label %outputs
take:
  %o = getelementptr [SIZE_OF_OPERAND x i8], ptr %inputs, i64 %i
  %ap = getelementptr ptr, ptr %args, i64 %i
  %a = load ptr, ptr %ap, align 8
  %range = getelementptr [2 x i64], ptr %ranges, i64 %i
  %kind = get i64 %o Operand.kind
  %is_array = icmp eq i64 %kind, ARRAY
  br i1 %is_array, label %array, label %number
array:
  %fits = call i1 @array(ptr %python, ptr %o, ptr %a, i32 READABLE, ptr %range)
  br i1 %fits, label %taken, label %no
number:
  %is_number = call i1 @number(ptr %python, ptr %o, ptr %a, ptr %range)
  br i1 %is_number, label %taken, label %no
taken:
  %i2 = add i64 %i, 1
  br label %next
outputs:
  %k = phi i64 [ 0, %next ], [ %k2, %apart ]
  %some = icmp ult i64 %k, %result_count
  br i1 %some, label %give, label %yes
give:
  %q = getelementptr [SIZE_OF_OPERAND x i8], ptr %results, i64 %k
  %tp = getelementptr ptr, ptr %targets, i64 %k
  %t = load ptr, ptr %tp, align 8
  %before = add i64 %input_count, %k
  %own = getelementptr [2 x i64], ptr %ranges, i64 %before
  %k2 = add i64 %k, 1
  %is_place = icmp eq ptr %t, null
  br i1 %is_place, label %place, label %target
place:
  call void @place(ptr %q, ptr %own)
  br label %apart
target:
  %good = call i1 @array(ptr %python, ptr %q, ptr %t, i32 WRITABLE, ptr %own)
  br i1 %good, label %earlier, label %no
earlier:
  %first = load i64, ptr %own, align 8
  %lp = getelementptr i64, ptr %own, i64 1
  %last = load i64, ptr %lp, align 8
  br label %compare
compare:
  %j = phi i64 [ 0, %earlier ], [ %j2, %other ]
  %others = icmp ult i64 %j, %before
  br i1 %others, label %other, label %apart
other:
  %r = getelementptr [2 x i64], ptr %ranges, i64 %j
  %first2 = load i64, ptr %r, align 8
  %lp2 = getelementptr i64, ptr %r, i64 1
  %last2 = load i64, ptr %lp2, align 8
  %j2 = add i64 %j, 1
  %begins = icmp ult i64 %first, %last2
  %begins2 = icmp ult i64 %first2, %last
  %overlap = and i1 %begins, %begins2
  br i1 %overlap, label %no, label %compare
apart:
  br label %outputs
yes:
  ret i1 1
no:
  ret i1 0
}

; Whether this is an array of the operand's type and shape with these flags; its address is in the table then, and its range noted.
define internal i1 @array(ptr %python, ptr %o, ptr %a, i32 %flags, ptr %range) #1 {
entry:
  %type = get ptr %a Object.type
  %array_type = get ptr %python Interpreter.array_type
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %fields, label %no
fields:
  %dtype = get ptr %a Array.dtype
  %wanted = get ptr %o Operand.dtype
  %axes32 = get i32 %a Array.axes
  %axes = sext i32 %axes32 to i64
  %rank = get i64 %o Operand.axes
  %has = get i32 %a Array.flags
  %set = and i32 %has, %flags
  %same = icmp eq ptr %dtype, %wanted
  %as_many = icmp eq i64 %axes, %rank
  %laid_out = icmp eq i32 %set, %flags
  %two = and i1 %same, %as_many
  %all = and i1 %two, %laid_out
  br i1 %all, label %shape, label %no
shape:
  %sizes = get ptr %a Array.sizes
  %wanted_sizes = get ptr %o Operand.sizes
  br label %next
next:
  %i = phi i64 [ 0, %shape ], [ %i2, %size ]
  %more = icmp ult i64 %i, %rank
  br i1 %more, label %size, label %yes
size:
  %sp = getelementptr i64, ptr %sizes, i64 %i
  %n = load i64, ptr %sp, align 8
  %wp = getelementptr i64, ptr %wanted_sizes, i64 %i
  %w = load i64, ptr %wp, align 8
  %i2 = add i64 %i, 1
  %equal = icmp eq i64 %n, %w
  br i1 %equal, label %next, label %no
yes:
  %data = get i64 %a Array.data
  %entry_at = get ptr %o Operand.entry
  store i64 %data, ptr %entry_at, align 8
  %bytes = get i64 %o Operand.bytes
  ; What is empty lies nowhere.
  %empty = icmp eq i64 %bytes, 0
  %end = add i64 %data, %bytes
  %from = select i1 %empty, i64 0, i64 %data
  %to = select i1 %empty, i64 0, i64 %end
  store i64 %from, ptr %range, align 8
  %tp = getelementptr i64, ptr %range, i64 1
  store i64 %to, ptr %tp, align 8
  ret i1 1
no:
  ret i1 0
}

; The operand is at its own place; what Python gives cannot overlap it.
define internal void @place(ptr %o, ptr %range) #1 {
  %place = get ptr %o Operand.place
  %entry_at = get ptr %o Operand.entry
  store ptr %place, ptr %entry_at, align 8
  store i64 0, ptr %range, align 8
  %tp = getelementptr i64, ptr %range, i64 1
  store i64 0, ptr %tp, align 8
  ret void
}

; Whether this is a number that fits; it is written at the operand's place then. NaN and what is not a plain number are left.
define internal i1 @number(ptr %python, ptr %o, ptr %a, ptr %range) #1 {
entry:
  %over = alloca i32
  %kind = get i64 %o Operand.kind
  %place = get ptr %o Operand.place
  %type = get ptr %a Object.type
  %float_type = get ptr %python Interpreter.float_type
  %int_type = get ptr %python Interpreter.int_type
  %is_float = icmp eq ptr %type, %float_type
  %is_int = icmp eq ptr %type, %int_type
  switch i64 %kind, label %no [
    i64 F32, label %float
    i64 F64, label %float
    i64 INT8, label %int
    i64 INT16, label %int
    i64 INT32, label %int
    i64 INT64, label %int
  ]
float:
  br i1 %is_float, label %float_value, label %no
float_value:
  %x = get double %a Object.number
  %least = get double %o Operand.low_float
  %most = get double %o Operand.high_float
  %above = fcmp oge double %x, %least
  %below = fcmp ole double %x, %most
  %between = and i1 %above, %below
  br i1 %between, label %float_fits, label %no
float_fits:
  %is_single = icmp eq i64 %kind, F32
  br i1 %is_single, label %single, label %double
single:
  %rounded = fptrunc double %x to float
  store float %rounded, ptr %place, align 4
  br label %yes
double:
  store double %x, ptr %place, align 8
  br label %yes
int:
  br i1 %is_int, label %int_value, label %no
int_value:
  %n = python i64 int_value(ptr %a, ptr %over)
  %outside = load i32, ptr %over, align 4
  %low = get i64 %o Operand.low
  %high = get i64 %o Operand.high
  %small = icmp eq i32 %outside, 0
  %from = icmp sge i64 %n, %low
  %to = icmp sle i64 %n, %high
  %range_ok = and i1 %from, %to
  %fits = and i1 %range_ok, %small
  br i1 %fits, label %write, label %no
write:
  switch i64 %kind, label %no [
    i64 INT8, label %write8
    i64 INT16, label %write16
    i64 INT32, label %write32
    i64 INT64, label %write64
  ]
write8:
  %n8 = trunc i64 %n to i8
  store i8 %n8, ptr %place, align 1
  br label %yes
write16:
  %n16 = trunc i64 %n to i16
  store i16 %n16, ptr %place, align 2
  br label %yes
write32:
  %n32 = trunc i64 %n to i32
  store i32 %n32, ptr %place, align 4
  br label %yes
write64:
  store i64 %n, ptr %place, align 8
  br label %yes
yes:
  call void @place(ptr %o, ptr %range)
  ret i1 1
no:
  ret i1 0
}

; To optimise them takes three times as long, and makes no call faster that could be measured.
attributes #1 = { nounwind noinline optnone }
"""

_GET = re.compile(r"^  %([\w.]+) = get (\w+) (%\w+) (\w+\.\w+)$", re.M)
_PUT = re.compile(r"^  put (\w+) (%?\w+) (%\w+) (\w+\.\w+)$", re.M)
_PYTHON = re.compile(r"^  (?:%(\w+) = )?python (\w+) (\w+)\((.*)\)$", re.M)
_ALIGN = {"ptr": 8, "i64": 8, "double": 8, "i32": 4}


@functools.cache
def caller_text() -> str:
    """The functions, which call `ocn_call` of the module they are in, and its attributes `#1`."""
    fields = _fields()
    serial = iter(range(1 << 30))

    def get(m: re.Match[str]) -> str:
        name, kind, base, field = m.groups()
        at = f"  %{name}.at = getelementptr i8, ptr {base}, i64 {fields[field]}\n"
        return f"{at}  %{name} = load {kind}, ptr %{name}.at, align {_ALIGN[kind]}"

    def put(m: re.Match[str]) -> str:
        kind, value, base, field = m.groups()
        at = f"%put.{next(serial)}"
        place = f"  {at} = getelementptr i8, ptr {base}, i64 {fields[field]}\n"
        return f"{place}  store {kind} {value}, ptr {at}, align {_ALIGN[kind]}"

    def python(m: re.Match[str]) -> str:
        name, kind, function, arguments = m.groups()
        code = f"python.{next(serial)}"
        found = get_text(code, f"Interpreter.{function}")
        return f"{found}\n  {f'%{name} = ' if name else ''}call {kind} %{code}({arguments})"

    def get_text(name: str, field: str) -> str:
        return _GET.sub(get, f"  %{name} = get ptr %python {field}")

    text = _TEXT
    for word, value in _numbers().items():
        text = re.sub(rf"\b{word}\b", str(value), text)
    return _GET.sub(get, _PUT.sub(put, _PYTHON.sub(python, text)))


def _numbers() -> dict[str, int]:
    kinds = {name: getattr(calls, name) for name in ("ARRAY", "F32", "F64", "INT8", "INT16", "INT32", "INT64")}
    readable = LAYOUT.contiguous | LAYOUT.aligned
    return {
        **kinds,
        "READABLE": readable,
        "WRITABLE": readable | LAYOUT.writeable,
        "SIZE_OF_OPERAND": ctypes.sizeof(Operand),
    }


def _fields() -> dict[str, int]:
    """Where the fields of all structures lie."""
    found = {f"Object.{f}": getattr(LAYOUT, f) for f in ("type", "number")}
    found |= {f"Array.{f}": getattr(LAYOUT, f) for f in ("data", "axes", "sizes", "dtype", "flags")}
    for structure in (Interpreter, Head, Call, Operand, Words):
        for field, *_ in structure._fields_:
            found[f"{structure.__name__}.{field}"] = getattr(structure, field).offset
    return found
