"""The executor and its threads, as LLVM IR.

    void ocn_call(ptr call)                                       runs `count` steps of {function, slots, turns, spare}, by
                                                                  {steps, count, table, pool, scratch, bytes of it for a thread}
    i32  ocn_pool_start(ptr pool, i32 threads)                    starts threads - 1 workers; gives how many run, with the caller
    void ocn_pool_stop(ptr pool)                                  ends them, once no call uses the pool; nobody can use it again

and the function by which Python calls, see `caller`.

A pool is `POOL_BYTES` of zeroed memory, aligned to 64, that stays where it is. A step with turns is shared out in equal stretches
over the threads, the last one not the longest, as it has what is left over besides; the caller takes the first. Workers wait for
a new epoch: they spin for a while, then park, on Linux on a futex, on other systems on a condition variable. A share that its worker
has not begun when the caller is through with its own is done by the caller, so that a step does not wait for a thread that has no
processor. A pool that is in use by another thread is not waited for either: the caller then does all turns itself. Which thread
takes a turn changes no result.
"""

from __future__ import annotations

from ocannl_lang.codegen.llvm.caller import caller_text
from ocannl_lang.codegen.llvm.target import Target

POOL_BYTES = 8192
MAX_THREADS = 128
_SPINS = 1000

# Offsets in a pool; what different threads write lies in different cache lines.
_PENDING, _BUSY, _SLEEPERS = 64, 128, 192  # the epoch is at 0
_FUNCTION, _SLOTS, _TURNS, _TABLE, _THREADS, _STOP = 256, 264, 272, 280, 288, 292
_SCRATCH, _OWN, _MUTEX, _CONDITION = 296, 304, 320, 448
_WORKERS = 640  # {pool, index, thread id, the step whose share was taken} for each

_COMMON = """
define internal void @share(ptr %pool, i32 %index) #0 {
entry:
  %fp = getelementptr i8, ptr %pool, i64 FUNCTION
  %function = load ptr, ptr %fp, align 8
  %sp = getelementptr i8, ptr %pool, i64 SLOTS
  %slots = load ptr, ptr %sp, align 8
  %np = getelementptr i8, ptr %pool, i64 TURNS
  %turns = load i64, ptr %np, align 8
  %tp = getelementptr i8, ptr %pool, i64 TABLE
  %table = load ptr, ptr %tp, align 8
  %hp = getelementptr i8, ptr %pool, i64 THREADS
  %threads32 = load i32, ptr %hp, align 4
  %threads = zext i32 %threads32 to i64
  %i = zext i32 %index to i64
  %j = add i64 %i, 1
  %most = sub i64 %threads, 1
  %pi = mul i64 %turns, %i
  %pj = mul i64 %turns, %j
  %ni = add i64 %pi, %most
  %nj = add i64 %pj, %most
  %begin = udiv i64 %ni, %threads
  %end = udiv i64 %nj, %threads
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %run, label %done
run:
  %cp = getelementptr i8, ptr %pool, i64 SCRATCH
  %scratch = load ptr, ptr %cp, align 8
  %op = getelementptr i8, ptr %pool, i64 OWN
  %own = load i64, ptr %op, align 8
  %far = mul i64 %own, %i
  %mine = getelementptr i8, ptr %scratch, i64 %far
  call void %function(ptr %table, ptr %slots, i64 %begin, i64 %end, ptr %mine)
  br label %done
done:
  ret void
}

; Whether the caller of this is the first to take a share of the step with this epoch.
define internal i1 @claim(ptr %pool, i32 %index, i32 %epoch) #0 {
  %i64 = zext i32 %index to i64
  %o = mul i64 %i64, 32
  %o2 = add i64 %o, WORKERS_CLAIM
  %cp = getelementptr i8, ptr %pool, i64 %o2
  %open = shl i32 %epoch, 1
  %taken = or i32 %open, 1
  %got = cmpxchg ptr %cp, i32 %open, i32 %taken acq_rel acquire
  %first = extractvalue { i32, i1 } %got, 1
  ret i1 %first
}

define internal i32 @await(ptr %pool, i32 %old) #0 {
entry:
  br label %spin
spin:
  %i = phi i32 [ 0, %entry ], [ %next, %again ]
  %now = load atomic i32, ptr %pool acquire, align 4
  %new = icmp ne i32 %now, %old
  br i1 %new, label %ready, label %again
again:
  PAUSE
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, SPINS
  br i1 %more, label %spin, label %park
park:
  %sp = getelementptr i8, ptr %pool, i64 SLEEPERS
  %s = atomicrmw add ptr %sp, i32 1 seq_cst
  call void @park(ptr %pool, i32 %old)
  %t = atomicrmw sub ptr %sp, i32 1 seq_cst
  %woken = load atomic i32, ptr %pool acquire, align 4
  ret i32 %woken
ready:
  ret i32 %now
}

define internal void @work(ptr %worker) #0 {
entry:
  %pool = load ptr, ptr %worker, align 8
  %ip = getelementptr i8, ptr %worker, i64 8
  %index64 = load i64, ptr %ip, align 8
  %index = trunc i64 %index64 to i32
  %pp = getelementptr i8, ptr %pool, i64 PENDING
  %stp = getelementptr i8, ptr %pool, i64 STOP
  br label %wait
wait:
  %old = phi i32 [ 0, %entry ], [ %new, %turn ], [ %new, %run ]
  %new = call i32 @await(ptr %pool, i32 %old)
  %stop = load atomic i32, ptr %stp acquire, align 4
  %over = icmp ne i32 %stop, 0
  br i1 %over, label %done, label %turn
turn:
  %mine = call i1 @claim(ptr %pool, i32 %index, i32 %new)
  br i1 %mine, label %run, label %wait
run:
  call void @share(ptr %pool, i32 %index)
  %left = atomicrmw sub ptr %pp, i32 1 acq_rel
  br label %wait
done:
  ret void
}

define internal void @announce(ptr %pool) #0 {
entry:
  %e = atomicrmw add ptr %pool, i32 1 seq_cst
  %sp = getelementptr i8, ptr %pool, i64 SLEEPERS
  %s = load atomic i32, ptr %sp seq_cst, align 4
  %some = icmp ne i32 %s, 0
  br i1 %some, label %wake, label %done
wake:
  call void @wake(ptr %pool)
  br label %done
done:
  ret void
}

define internal void @fork(ptr %pool, ptr %function, ptr %slots, i64 %turns, ptr %table, ptr %scratch, i64 %own) #0 {
entry:
  %bp = getelementptr i8, ptr %pool, i64 BUSY
  %got = cmpxchg ptr %bp, i32 0, i32 1 acq_rel acquire
  %free = extractvalue { i32, i1 } %got, 1
  br i1 %free, label %together, label %alone
alone:
  call void %function(ptr %table, ptr %slots, i64 0, i64 %turns, ptr %scratch)
  ret void
together:
  %fp = getelementptr i8, ptr %pool, i64 FUNCTION
  store ptr %function, ptr %fp, align 8
  %sp = getelementptr i8, ptr %pool, i64 SLOTS
  store ptr %slots, ptr %sp, align 8
  %np = getelementptr i8, ptr %pool, i64 TURNS
  store i64 %turns, ptr %np, align 8
  %tp = getelementptr i8, ptr %pool, i64 TABLE
  store ptr %table, ptr %tp, align 8
  %cmp = getelementptr i8, ptr %pool, i64 SCRATCH
  store ptr %scratch, ptr %cmp, align 8
  %op = getelementptr i8, ptr %pool, i64 OWN
  store i64 %own, ptr %op, align 8
  %hp = getelementptr i8, ptr %pool, i64 THREADS
  %threads = load i32, ptr %hp, align 4
  %others = sub i32 %threads, 1
  %pp = getelementptr i8, ptr %pool, i64 PENDING
  store atomic i32 %others, ptr %pp release, align 4
  %e = load atomic i32, ptr %pool monotonic, align 4
  %epoch = add i32 %e, 1
  %open = shl i32 %epoch, 1
  br label %offer
offer:
  %w = phi i32 [ 1, %together ], [ %w2, %offer ]
  %w64 = zext i32 %w to i64
  %wo = mul i64 %w64, 32
  %wo2 = add i64 %wo, WORKERS_CLAIM
  %cp = getelementptr i8, ptr %pool, i64 %wo2
  store atomic i32 %open, ptr %cp release, align 4
  %w2 = add i32 %w, 1
  %offered = icmp uge i32 %w2, %threads
  br i1 %offered, label %begin, label %offer
begin:
  call void @announce(ptr %pool)
  call void @share(ptr %pool, i32 0)
  %lonely = icmp ult i32 %threads, 2
  br i1 %lonely, label %done, label %take
take:
  ; A worker that has not come yet, as others have the processors, is not waited for.
  %t = phi i32 [ 1, %begin ], [ %t2, %taken ]
  %mine = call i1 @claim(ptr %pool, i32 %t, i32 %epoch)
  br i1 %mine, label %instead, label %taken
instead:
  call void @share(ptr %pool, i32 %t)
  %one = atomicrmw sub ptr %pp, i32 1 acq_rel
  br label %taken
taken:
  %t2 = add i32 %t, 1
  %asked = icmp uge i32 %t2, %threads
  br i1 %asked, label %join, label %take
join:
  %i = phi i32 [ 0, %taken ], [ %next, %pause ], [ %next, %lend ]
  %left = load atomic i32, ptr %pp acquire, align 4
  %all = icmp eq i32 %left, 0
  br i1 %all, label %done, label %pause
pause:
  PAUSE
  %next = add i32 %i, 1
  %few = urem i32 %next, SPINS
  %long = icmp eq i32 %few, 0
  br i1 %long, label %lend, label %join
lend:
  ; Others want the processors: the worker that is waited for may be one of those that have none.
  call void @lend_time()
  br label %join
done:
  store atomic i32 0, ptr %bp release, align 4
  ret void
}

define void @ocn_call(ptr %call) #0 {
entry:
  %steps = load ptr, ptr %call, align 8
  %ccp = getelementptr i8, ptr %call, i64 8
  %count = load i64, ptr %ccp, align 8
  %tp = getelementptr i8, ptr %call, i64 16
  %table = load ptr, ptr %tp, align 8
  %pp = getelementptr i8, ptr %call, i64 24
  %pool = load ptr, ptr %pp, align 8
  %cp = getelementptr i8, ptr %call, i64 32
  %scratch = load ptr, ptr %cp, align 8
  %op = getelementptr i8, ptr %call, i64 40
  %own = load i64, ptr %op, align 8
  %any = icmp ne i64 %count, 0
  br i1 %any, label %step, label %done
step:
  %k = phi i64 [ 0, %entry ], [ %next, %after ]
  %at = getelementptr [4 x i64], ptr %steps, i64 %k
  %function = load ptr, ptr %at, align 8
  %sp = getelementptr i8, ptr %at, i64 8
  %slots = load ptr, ptr %sp, align 8
  %np = getelementptr i8, ptr %at, i64 16
  %turns = load i64, ptr %np, align 8
  %few = icmp ult i64 %turns, 2
  %none = icmp eq ptr %pool, null
  %single = or i1 %few, %none
  br i1 %single, label %alone, label %together
alone:
  call void %function(ptr %table, ptr %slots, i64 0, i64 %turns, ptr %scratch)
  br label %after
together:
  call void @fork(ptr %pool, ptr %function, ptr %slots, i64 %turns, ptr %table, ptr %scratch, i64 %own)
  br label %after
after:
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %step, label %done
done:
  ret void
}

define i32 @ocn_pool_start(ptr %pool, i32 %threads) #0 {
entry:
  %hp = getelementptr i8, ptr %pool, i64 THREADS
  call void @prepare(ptr %pool)
  br label %next
next:
  %i = phi i32 [ 1, %entry ], [ %j, %ok ]
  %more = icmp slt i32 %i, %threads
  br i1 %more, label %make, label %done
make:
  %i64 = zext i32 %i to i64
  %o = mul i64 %i64, 32
  %o2 = add i64 %o, WORKERS
  %worker = getelementptr i8, ptr %pool, i64 %o2
  store ptr %pool, ptr %worker, align 8
  %ip = getelementptr i8, ptr %worker, i64 8
  store i64 %i64, ptr %ip, align 8
  %idp = getelementptr i8, ptr %worker, i64 16
  %failed = call i32 @spawn(ptr %idp, ptr %worker)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %done, label %ok
ok:
  %j = add i32 %i, 1
  br label %next
done:
  store i32 %i, ptr %hp, align 4
  ret i32 %i
}

define void @ocn_pool_stop(ptr %pool) #0 {
entry:
  %bp = getelementptr i8, ptr %pool, i64 BUSY
  br label %try
try:
  %n = phi i64 [ 0, %entry ], [ %n2, %again ]
  %got = cmpxchg ptr %bp, i32 0, i32 1 acq_rel acquire
  %free = extractvalue { i32, i1 } %got, 1
  br i1 %free, label %mine, label %again
again:
  call void @lend_time()
  %n2 = add i64 %n, 1
  %patient = icmp ult i64 %n2, 1000000
  br i1 %patient, label %try, label %left
left:
  ret void
mine:
  %stp = getelementptr i8, ptr %pool, i64 STOP
  store atomic i32 1, ptr %stp release, align 4
  call void @announce(ptr %pool)
  %hp = getelementptr i8, ptr %pool, i64 THREADS
  %threads = load i32, ptr %hp, align 4
  br label %next
next:
  %i = phi i32 [ 1, %mine ], [ %j, %join ]
  %more = icmp slt i32 %i, %threads
  br i1 %more, label %join, label %done
join:
  %i64 = zext i32 %i to i64
  %o = mul i64 %i64, 32
  %o2 = add i64 %o, WORKERS_ID
  %idp = getelementptr i8, ptr %pool, i64 %o2
  %id = load i64, ptr %idp, align 8
  call void @await_end(i64 %id)
  %j = add i32 %i, 1
  br label %next
done:
  ; It stays in use for ever: calls that still have its address do all turns themselves.
  store i32 1, ptr %hp, align 4
  ret void
}
"""

_PTHREADS = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

declare i32 @sched_yield()

define internal void @lend_time() #0 {
  %r = call i32 @sched_yield()
  ret void
}

define internal ptr @main(ptr %worker) #0 {
  call void @work(ptr %worker)
  ret ptr null
}

define internal i32 @spawn(ptr %id, ptr %worker) #0 {
  %r = call i32 @pthread_create(ptr %id, ptr null, ptr @main, ptr %worker)
  ret i32 %r
}

define internal void @await_end(i64 %id) #0 {
  %r = call i32 @pthread_join(i64 %id, ptr null)
  ret void
}
"""

_FUTEX = """
declare i64 @syscall(i64, ...)

define internal void @prepare(ptr %pool) #0 {
  ret void
}

define internal void @park(ptr %pool, i32 %old) #0 {
entry:
  br label %look
look:
  %now = load atomic i32, ptr %pool seq_cst, align 4
  %new = icmp ne i32 %now, %old
  br i1 %new, label %done, label %sleep
sleep:
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i64 128, i32 %old, ptr null, ptr null, i64 0)
  br label %look
done:
  ret void
}

define internal void @wake(ptr %pool) #0 {
  %r = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %pool, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  ret void
}
"""

_CONDITION_VARIABLE = """
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)

define internal void @prepare(ptr %pool) #0 {
  %m = getelementptr i8, ptr %pool, i64 MUTEX
  %c = getelementptr i8, ptr %pool, i64 CONDITION
  %a = call i32 @pthread_mutex_init(ptr %m, ptr null)
  %b = call i32 @pthread_cond_init(ptr %c, ptr null)
  ret void
}

define internal void @park(ptr %pool, i32 %old) #0 {
entry:
  %m = getelementptr i8, ptr %pool, i64 MUTEX
  %c = getelementptr i8, ptr %pool, i64 CONDITION
  %a = call i32 @pthread_mutex_lock(ptr %m)
  br label %look
look:
  %now = load atomic i32, ptr %pool seq_cst, align 4
  %new = icmp ne i32 %now, %old
  br i1 %new, label %done, label %sleep
sleep:
  %r = call i32 @pthread_cond_wait(ptr %c, ptr %m)
  br label %look
done:
  %b = call i32 @pthread_mutex_unlock(ptr %m)
  ret void
}

define internal void @wake(ptr %pool) #0 {
  %m = getelementptr i8, ptr %pool, i64 MUTEX
  %c = getelementptr i8, ptr %pool, i64 CONDITION
  %a = call i32 @pthread_mutex_lock(ptr %m)
  %r = call i32 @pthread_cond_broadcast(ptr %c)
  %b = call i32 @pthread_mutex_unlock(ptr %m)
  ret void
}
"""

_WINDOWS = """
declare ptr @CreateThread(ptr, i64, ptr, ptr, i32, ptr)
declare i32 @WaitForSingleObject(ptr, i32)
declare i32 @CloseHandle(ptr)
declare void @AcquireSRWLockExclusive(ptr)
declare void @ReleaseSRWLockExclusive(ptr)
declare i32 @SleepConditionVariableSRW(ptr, ptr, i32, i32)
declare void @WakeAllConditionVariable(ptr)

declare i32 @SwitchToThread()

define internal void @lend_time() #0 {
  %r = call i32 @SwitchToThread()
  ret void
}

define internal i32 @main(ptr %worker) #0 {
  call void @work(ptr %worker)
  ret i32 0
}

define internal i32 @spawn(ptr %id, ptr %worker) #0 {
  %h = call ptr @CreateThread(ptr null, i64 0, ptr @main, ptr %worker, i32 0, ptr null)
  store ptr %h, ptr %id, align 8
  %bad = icmp eq ptr %h, null
  %r = zext i1 %bad to i32
  ret i32 %r
}

define internal void @await_end(i64 %id) #0 {
  %h = inttoptr i64 %id to ptr
  %r = call i32 @WaitForSingleObject(ptr %h, i32 -1)
  %c = call i32 @CloseHandle(ptr %h)
  ret void
}

define internal void @prepare(ptr %pool) #0 {
  ret void
}

define internal void @park(ptr %pool, i32 %old) #0 {
entry:
  %m = getelementptr i8, ptr %pool, i64 MUTEX
  %c = getelementptr i8, ptr %pool, i64 CONDITION
  call void @AcquireSRWLockExclusive(ptr %m)
  br label %look
look:
  %now = load atomic i32, ptr %pool seq_cst, align 4
  %new = icmp ne i32 %now, %old
  br i1 %new, label %done, label %sleep
sleep:
  %r = call i32 @SleepConditionVariableSRW(ptr %c, ptr %m, i32 -1, i32 0)
  br label %look
done:
  call void @ReleaseSRWLockExclusive(ptr %m)
  ret void
}

define internal void @wake(ptr %pool) #0 {
  %m = getelementptr i8, ptr %pool, i64 MUTEX
  %c = getelementptr i8, ptr %pool, i64 CONDITION
  call void @AcquireSRWLockExclusive(ptr %m)
  call void @WakeAllConditionVariable(ptr %c)
  call void @ReleaseSRWLockExclusive(ptr %m)
  ret void
}
"""


def executor(target: Target, parking: str = "") -> str:
    """The module for a target; `parking` is `futex`, `condition` or `windows`, by default what the system has."""
    arch = target.triple.split("-", 1)[0]
    numbers = {"x86_64": 202, "aarch64": 98}
    if not parking:
        if "windows" in target.triple:
            parking = "windows"
        else:
            parking = "futex" if "linux" in target.triple and arch in numbers else "condition"
    text = (
        _COMMON
        + {
            "futex": _PTHREADS + _FUTEX,
            "condition": _PTHREADS + _CONDITION_VARIABLE,
            "windows": _WINDOWS,
        }[parking]
    )
    if arch in ("x86_64", "i686"):
        pause, declare = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()\n"
    elif arch in ("aarch64", "arm64"):
        pause, declare = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)\n"
    else:
        pause, declare = "", ""
    values = {
        "FUTEX": numbers.get(arch, 0),
        "SPINS": _SPINS,
        "WORKERS_ID": _WORKERS + 16,
        "WORKERS_CLAIM": _WORKERS + 24,
        "WORKERS": _WORKERS,
        "FUNCTION": _FUNCTION,
        "SLOTS": _SLOTS,
        "TURNS": _TURNS,
        "TABLE": _TABLE,
        "THREADS": _THREADS,
        "SLEEPERS": _SLEEPERS,
        "PENDING": _PENDING,
        "BUSY": _BUSY,
        "STOP": _STOP,
        "SCRATCH": _SCRATCH,
        "OWN": _OWN,
        "MUTEX": _MUTEX,
        "CONDITION": _CONDITION,
    }
    text = text.replace("PAUSE", pause)
    for name, value in values.items():
        text = text.replace(f"i64 {name}", f"i64 {value}").replace(f", {name}", f", {value}")
    return declare + text + caller_text() + "\nattributes #0 = { nounwind }\n"
