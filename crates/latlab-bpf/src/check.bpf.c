/* BPF programs of the check: what the threads of the watched processes ask of the kernel, and how they are
 * scheduled. */
#include "current.h"
#include "check.h"
#include "task.h"

const char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Watched processes by their PIDs. */
struct {
	__uint(type, 1 /* BPF_MAP_TYPE_HASH */);
	__uint(max_entries, PROCESSES);
	__type(key, __u32);
	__type(value, struct process);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ROOM);
} notes SEC(".maps");

const volatile struct check_settings check_settings SEC(".rodata.check_settings");
/* Events that found no room, and processes that are not watched for lack of it. */
__u64 missed[2] SEC(".bss.missed");

/* Some of the watched processes: looking here first saves most of the time of looking into the map. */
__u32 known[PROCESSES] SEC(".bss.known");

INLINE __u32 *place(__u32 process)
{
	return &known[process & (PROCESSES - 1)];
}

/* Whether the threads of a watched process with the policy of this one are watched. The idle tasks are none of a
 * process. A thread that exits is not watched any more: it is switched out for the last time after its EXIT. */
INLINE bool has_watched_policy(struct task_struct *task)
{
	return (task->normal_prio < 100 || (check_settings.any_policy && task->tgid)) &&
	       !(task->flags & EXITING);
}

/* The process of a task, if the task is watched. */
INLINE struct process *process_of(struct task_struct *task)
{
	__u32 process = task->tgid;

	return has_watched_policy(task) ? bpf_map_lookup_elem(&processes, &process) : 0;
}

INLINE bool is_watched(struct task_struct *task)
{
	__u32 process = task->tgid;

	if (!has_watched_policy(task))
		return false;
	if (*place(process) == process)
		return true;
	if (!bpf_map_lookup_elem(&processes, &process))
		return false;
	*place(process) = process;
	return true;
}

INLINE void describe(struct note *note, struct task_struct *task, __u8 kind)
{
	note->at = bpf_ktime_get_ns();
	note->tid = task->pid;
	note->tgid = task->tgid;
	note->prio = task->normal_prio;
	note->policy = TASK(task)->policy;
	note->kind = kind;
	note->cpu = bpf_get_smp_processor_id();
	__builtin_memcpy(note->comm, task->comm, 16);
	__builtin_memset(note->value, 0, sizeof(note->value));
}

INLINE struct note *begin(struct task_struct *task, __u8 kind)
{
	struct note *note = bpf_ringbuf_reserve(&notes, sizeof(*note), 0);

	if (note)
		describe(note, task, kind);
	else
		__sync_fetch_and_add(&missed[0], 1);
	return note;
}

INLINE void submit(void *note)
{
	bpf_ringbuf_submit(note, BPF_RB_NO_WAKEUP);
}

/* Writes an event with one number. */
INLINE void tell(struct task_struct *task, __u8 kind, __u64 value)
{
	struct note *note = begin(task, kind);

	if (!note)
		return;
	note->value[0] = value;
	submit(note);
}

/* The registers of a tracepoint or of bpf_task_pt_regs() are read without a helper. */
INLINE __u64 instruction_pointer(struct pt_regs___check *regs)
{
	return bpf_core_field_exists(regs->ip) ? regs->ip : regs->pc;
}

/* Copies registers and the top of the stack of the user's code. */
INLINE void copy_stack(struct long_note *note, struct pt_regs___check *regs)
{
	note->ip = instruction_pointer(regs);
	if (bpf_core_field_exists(regs->ip)) {
		note->bp = regs->bp;
		note->lr = 0;
	} else {
		note->bp = regs->regs[29];
		note->lr = regs->regs[30];
	}
	note->sp = regs->sp;
	note->length = STACK;
	note->reserved = 0;
	if (!bpf_probe_read_user(note->stack, STACK, (void *)note->sp))
		return;
	note->length = SHORT_STACK;
	if (bpf_probe_read_user(note->stack, SHORT_STACK, (void *)note->sp))
		note->length = 0;
}

INLINE struct long_note *begin_long(struct task_struct *task, __u8 kind)
{
	struct long_note *note = bpf_ringbuf_reserve(&notes, sizeof(*note), 0);

	if (!note) {
		__sync_fetch_and_add(&missed[0], 1);
		return 0;
	}
	describe(&note->note, task, kind);
	__builtin_memset(note->file, 0, sizeof(note->file));
	return note;
}

/* The kind of the file with that number, its device and its name. For a timer, the clock takes the
 * place of the device. */
INLINE void describe_file(struct long_note *note, struct task_struct *task, __u64 number)
{
	struct fdtable___check *table = BPF_CORE_READ(TASK(task), files, fdt);
	struct file___check **files, *file = 0;

	if (!table || number >= BPF_CORE_READ(table, max_fds))
		return;
	files = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), files + number);
	if (!file)
		return;
	const unsigned char *name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
	__u64 device = BPF_CORE_READ(file, f_inode, i_rdev);

	bpf_probe_read_kernel_str(note->file, sizeof(note->file), name);
	if (*(__u64 *)note->file == 0x646672656d69745bULL /* "[timerfd" */ &&
	    bpf_core_field_exists(struct timerfd_ctx___check, clockid)) {
		struct timerfd_ctx___check *timer = BPF_CORE_READ(file, private_data);

		device = BPF_CORE_READ(timer, clockid);
	}
	__u64 mode = BPF_CORE_READ(file, f_inode, i_mode);

	if ((mode & 0170000) == 0140000 && bpf_core_field_exists(struct sock___check, sk_rcvtimeo)) {
		struct socket___check *socket = BPF_CORE_READ(file, private_data);
		__s64 ticks = BPF_CORE_READ(socket, sk, sk_rcvtimeo);

		note->note.value[7] = ticks < ~0ULL >> 1 ? ticks : 0;
	}
	note->note.value[8] = device << 32 | 1 << 16 | mode;
}

INLINE void read_arguments(__u64 *value, struct pt_regs___check *regs)
{
	if (bpf_core_field_exists(regs->di)) {
		value[0] = regs->di;
		value[1] = regs->si;
		value[2] = regs->dx;
		value[3] = regs->r10;
		value[4] = regs->r8;
		value[5] = regs->r9;
		return;
	}
	value[0] = regs->orig_x0;
	value[1] = regs->regs[1];
	value[2] = regs->regs[2];
	value[3] = regs->regs[3];
	value[4] = regs->regs[4];
	value[5] = regs->regs[5];
}

/* The number of the system call in progress; below 0 after sigreturn(). */
INLINE __s64 call_number(struct pt_regs___check *regs)
{
	return bpf_core_field_exists(regs->di) ? (__s64)regs->orig_ax : regs->syscallno;
}

/* Reads a struct timespec of the user's. */
INLINE __u64 read_time(__u64 address)
{
	__s64 time[2] = {};

	bpf_probe_read_user(time, sizeof(time), (void *)address);
	return time[0] * 1000000000 + time[1];
}

/* Whether memory is locked: bit 0 for what is mapped from now on, bit 1 for some that is mapped. */
INLINE __u64 locks(struct task_struct *task)
{
	struct mm_struct___check *mm = TASK(task)->mm;

	if (!mm)
		return 0;
	return (mm->def_flags & 0x2000 /* VM_LOCKED */ ? 1 : 0) | (mm->locked_vm ? 2 : 0);
}

INLINE void describe_call(struct note *note, struct task_struct *task, struct pt_regs *regs,
			  __u64 number)
{
	note->value[0] = number;
	read_arguments(note->value + 1, (void *)regs);
	note->value[9] = locks(task);
}

/* Sums up the words on the top of the stack that may be addresses of the user's code: above 4 GiB, or near
 * the instruction pointer in a program that is linked to 4 MiB. Times and counts, which differ in each
 * cycle, are mostly not. */
static __noinline __u64 callers(__u64 sp, __u64 ip)
{
	__u64 words[CALLERS], sum = 0;

	bpf_probe_read_user(words, sizeof(words), (void *)sp);
	for (int i = 0; i < CALLERS; i++) {
		__u64 word = words[i], high = word >> 32;

		if ((high && high < 1 << 16) || (word >= 4 << 20 && (word ^ ip) < 64 << 20))
			sum = sum * 31 + word;
	}
	return sum;
}

/* The memory around a futex, which tells what kind of lock it is and who holds it. */
INLINE void describe_lock(struct long_note *note, __u64 address)
{
	__u64 words[LOCK_WORDS / 2] = {};

	if (bpf_probe_read_user(words, sizeof(words), (void *)(address - LOCK_BEFORE))) {
		/* It may begin a mapping. */
		__builtin_memset(words, 0, sizeof(words));
		bpf_probe_read_user((char *)words + LOCK_BEFORE, sizeof(words) - LOCK_BEFORE,
				    (void *)address);
	}
	note->note.value[8] = words[0];
	note->note.value[10] = words[1];
	__builtin_memcpy(note->file, words + 2, sizeof(note->file));
}

INLINE void describe_wait(struct note *note, struct task_struct *task, struct pt_regs *regs,
			  __u64 number)
{
	describe_call(note, task, regs, number);
	note->value[7] = read_time(note->value[number == check_settings.nanosleep ? 1 : 3]);
}

/* The wait of a cycle: a call that is made again and again. Its stack is copied only if the call comes
 * from elsewhere than the last one of the process, or from another thread. Both kinds of notes are written
 * apart: the verifier of Linux 6.1 loses the type of a pointer that comes from either. */
INLINE void wait(struct task_struct *task, struct process *process, struct pt_regs *regs,
		 __u64 number)
{
	struct pt_regs___check *user = (void *)regs;
	__u64 ip = instruction_pointer(user), sp = user->sp, from = callers(sp, ip);

	if (!bpf_core_field_exists(user->ip))
		from += user->regs[30];
	if (process->ip == ip && process->sp == sp && process->callers == from &&
	    process->tid == task->pid) {
		struct note *note = begin(task, ENTER);

		if (!note)
			return;
		describe_wait(note, task, regs, number);
		submit(note);
		return;
	}
	struct long_note *full = begin_long(task, ENTER);

	if (!full)
		return;
	describe_wait(&full->note, task, regs, number);
	copy_stack(full, user);
	process->ip = ip;
	process->sp = sp;
	process->callers = from;
	process->tid = task->pid;
	submit(full);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct process *process = process_of(task);

	if (!process)
		return 0;
	if (number == check_settings.nanosleep || number == check_settings.clock_nanosleep) {
		wait(task, process, regs, number);
		return 0;
	}
	struct long_note *note = begin_long(task, ENTER);

	if (!note)
		return 0;
	describe_call(&note->note, task, regs, number);
	if (number == check_settings.futex) {
		if (note->note.value[4])
			note->note.value[7] = read_time(note->note.value[4]);
		describe_lock(note, note->note.value[1]);
	} else {
		describe_file(note, task, note->note.value[1]);
	}
	copy_stack(note, (void *)regs);
	submit(note);
	return 0;
}

#include "request.h"
#include "check_stop.h"

/* Whether a system call that returns has mapped code of a file. */
INLINE bool maps_code(struct pt_regs___check *regs)
{
	bool x86 = bpf_core_field_exists(regs->di);

	return call_number(regs) == check_settings.mmap &&
	       (x86 ? regs->dx : regs->regs[2]) & 4 /* PROT_EXEC */;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct note *note;

	if (maps_code((void *)regs)) {
		__u32 process = task->tgid;

		if (bpf_map_lookup_elem(&processes, &process))
			tell(task, MAPPED, 0);
	}
	if (is_request(call_number((void *)regs)))
		request((void *)bpf_task_pt_regs(task), call_number((void *)regs), result);
	if (!is_watched(task) || !(note = begin(task, LEAVE)))
		return 0;
	note->value[0] = result;
	note->value[1] = call_number((void *)regs);
	submit(note);
	return 0;
}

/* A mark: its name and its ID are in the registers of the first arguments (latlab-mark.h). A name whose
 * page is not in memory stays empty. */
INLINE void mark(__u8 kind)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct note *note;

	if (!is_watched(task) || !(note = begin(task, kind)))
		return;
	struct pt_regs___check *regs = (void *)bpf_task_pt_regs(task);
	bool x86 = bpf_core_field_exists(regs->di);
	__u64 name = x86 ? regs->di : regs->regs[0];

	note->value[0] = x86 ? regs->si : regs->regs[1];
	bpf_probe_read_user_str(&note->value[1], NAME, (void *)name);
	submit(note);
}

SEC("uprobe")
int mark_begin(void *registers)
{
	mark(BEGIN);
	return 0;
}

SEC("uprobe")
int mark_end(void *registers)
{
	mark(END);
	return 0;
}

INLINE void fault(struct pt_regs *regs, __u64 address, __u64 code, bool in_kernel)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!is_watched(task))
		return;
	struct long_note *note = begin_long(task, FAULT);

	if (!note)
		return;
	note->note.value[0] = address;
	note->note.value[1] = code;
	note->note.value[2] = TASK(task)->maj_flt;
	note->note.value[3] = in_kernel;
	copy_stack(note, (void *)regs);
	submit(note);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(page_fault_user, unsigned long address, struct pt_regs *regs, unsigned long code)
{
	fault(regs, address, code, false);
	return 0;
}

/* A fault while page faults are disabled is not handled: it ends an attempt to read, as of these
 * programs themselves beyond the end of a stack. */
SEC("tp_btf/page_fault_kernel")
int BPF_PROG(page_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long code)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (address >> 63 || TASK(task)->pagefault_disabled)
		return 0;
	fault((void *)bpf_task_pt_regs(task), address, code, true);
	return 0;
}

/* Where there are no such tracepoints: the software event of page faults, which does not tell writes from
 * reads. On arm64 the context begins with 31 registers, sp, pc and pstate; the period and the address
 * follow (bpf_perf_event.h). */
SEC("perf_event")
int page_fault_event(__u64 *ctx)
{
	__u64 pstate = ctx[33], address = ctx[35];

	fault((void *)bpf_task_pt_regs(bpf_get_current_task_btf()), address, 0, pstate & 15);
	return 0;
}

/* Only faults of programs have registers; mlock() and the like have none. */
SEC("fexit/handle_mm_fault")
int BPF_PROG(handle_mm_fault, void *area, unsigned long address, unsigned int flags,
	     struct pt_regs *regs, unsigned int result)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (regs && is_watched(task))
		tell(task, FAULTED, result);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(sched_waking, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();

	if (!is_watched(task))
		return 0;
	struct note *note = begin(task, WAKING);

	if (!note)
		return 0;
	note->value[0] = current->pid;
	note->value[1] = (__s64)current->prio;
	note->value[2] = UNKNOWN;
	if (task->pi_blocked_on) {
		note->value[2] = LOCK;
	} else if (places.interrupts) {
		__u32 count = preempt_count(current);
		bool interrupt = count & places.interrupts || serves(current, count) ||
				 kind(current) != OTHER;

		/* The idle task runs work that interrupts left. */
		note->value[2] = interrupt || !current->pid ? INTERRUPT : BY_TASK;
	}
	__builtin_memcpy(&note->value[3], current->comm, 16);
	submit(note);
	return 0;
}

/* A signal that stops the process: SIGSTOP, SIGTSTP, SIGTTIN or SIGTTOU. */
SEC("tp_btf/signal_generate")
int BPF_PROG(signal_generate, int number, void *info, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();
	__u32 key = task->tgid;
	struct process *process;

	if (number < 19 || number > 22 || !(process = bpf_map_lookup_elem(&processes, &key)))
		return 0;
	process->stopper = current->pid;
	__builtin_memcpy(process->stopper_name, current->comm, 16);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	struct note *note;

	if (is_watched(prev) && (note = begin(prev, OUT))) {
		note->value[0] = state;
		note->value[1] = preempted;
		note->value[2] = next->pid;
		note->value[3] = (__s64)next->prio;
		__builtin_memcpy(&note->value[4], next->comm, 16);
		note->value[7] = next->flags & KTHREAD;
		enum stop how = stop(prev, state);

		if (how && !preempted)
			describe_stop(note, prev, how);
		submit(note);
	}
	if (is_watched(next))
		tell(next, IN, TASK(next)->maj_flt);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int cpu)
{
	if (is_watched(task))
		tell(task, MIGRATE, (__u32)cpu);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 process = parent->tgid, started = child->tgid;
	struct process new = {};
	bool watched = bpf_map_lookup_elem(&processes, &process);

	if (process == started || !(watched || process == check_settings.parent))
		return 0;
	if (bpf_map_update_elem(&processes, &started, &new, 0))
		__sync_fetch_and_add(&missed[1], 1);
	tell(parent, FORK, started);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task)
{
	__u32 process = task->tgid;

	if (bpf_map_lookup_elem(&processes, &process))
		tell(task, EXEC, 0);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(sched_process_exit, struct task_struct *task)
{
	__u32 process = task->tgid;

	if (!bpf_map_lookup_elem(&processes, &process))
		return 0;
	/* The main thread may end before others. */
	bool is_last = !TASK(task)->signal->live.counter;

	tell(task, EXIT, is_last);
	if (!is_last)
		return 0;
	bpf_map_delete_elem(&processes, &process);
	if (*place(process) == process)
		*place(process) = 0;
	return 0;
}
