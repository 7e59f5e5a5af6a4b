/* Waits of watched tasks for locks of the kernel: since Linux 5.19 it reports where they begin and end. */
#ifndef LATLAB_LOCK_H
#define LATLAB_LOCK_H

#include "wake.h"

typedef struct {
	__s64 counter;
} atomic_long_t;

struct mutex {
	atomic_long_t owner;	/* a task; the low bits are flags */
} CORE;

struct rw_semaphore {
	atomic_long_t owner;	/* the same */
} CORE;

struct rt_mutex_base {
	struct task_struct *owner;	/* the same */
} CORE;

/* PREEMPT_RT: a lock for readers and writers. A writer has the mutex in it. */
struct rwbase_rt {
	struct rt_mutex_base rtmutex;
} CORE;

struct mm_struct___lock {
	struct rw_semaphore mmap_lock;
} CORE;

struct task_struct___lock {
	struct mm_struct___lock *mm;
} CORE;

/* Flags of the tracepoint (include/trace/events/lock.h). */
enum { SPINS = 1, FOR_READING = 2, FOR_WRITING = 4, RT_LOCK = 8, PER_CPU = 16, MUTEX = 32 };

/* Bits of an owner that are flags. The lowest of a rw_semaphore says that readers have it. */
#define OWNER_FLAGS 7
#define READERS 1

/* Offset of the owner in a lock, plus 1; 0 where the lock does not have it: a spinlock, a semaphore, a
 * lock per CPU. Without PREEMPT_RT only the mutexes of the kernel's real-time futexes are of its kind. */
INLINE __u64 place_of_owner(__u32 flags)
{
	bool for_access = flags & (FOR_READING | FOR_WRITING);

	if (flags & RT_LOCK && for_access)
		return bpf_core_field_exists(struct rwbase_rt, rtmutex) ?
			1 + bpf_core_field_offset(struct rwbase_rt, rtmutex) +
			bpf_core_field_offset(struct rt_mutex_base, owner) : 0;
	if (flags & RT_LOCK)
		return 1 + bpf_core_field_offset(struct rt_mutex_base, owner);
	if (flags & MUTEX)
		return bpf_core_field_exists(struct mutex, owner) ?
			1 + bpf_core_field_offset(struct mutex, owner) : 0;
	if (flags & (SPINS | PER_CPU) || !for_access)
		return 0;
	return bpf_core_field_exists(struct rw_semaphore, owner) ?
		1 + bpf_core_field_offset(struct rw_semaphore, owner) : 0;
}

/* The owner with its flags, or 0. */
INLINE __u64 owner_of(__u64 lock, __u32 flags)
{
	__u64 place = place_of_owner(flags);

	return place ? word(lock + place - 1) : 0;
}

/* Whether it is the lock of the address space of a task. */
INLINE bool is_mmap_lock(__u64 lock, struct task_struct *task)
{
	__u64 memory = (__u64)BPF_CORE_READ((struct task_struct___lock *)task, mm);

	return memory && lock == memory + bpf_core_field_offset(struct mm_struct___lock, mmap_lock);
}

/* Describes the owner. It may have ended, if it was a reader: the memory is read with care. */
INLINE void describe_owner(struct who *who, struct task_struct *owner)
{
	__builtin_memset(who, 0, sizeof(*who));
	if (!owner)
		return;
	who->pid = BPF_CORE_READ(owner, pid);
	who->prio = BPF_CORE_READ(owner, prio);
	who->cpu = BPF_CORE_READ(owner, thread_info.cpu);
	bpf_core_read(who->comm, sizeof(who->comm), &owner->comm);
}

/* Records a wait that begins: the address of the lock takes the place of the task's name. */
INLINE void note_wait(struct ring *ring, struct task_struct *task, __u64 lock, __u32 flags)
{
	__u64 owner = owner_of(lock, flags);
	struct task_struct *holder = (void *)(owner & ~OWNER_FLAGS);

	/* A writer of PREEMPT_RT that has the mutex and waits for readers, who are not known. */
	if (holder == task)
		holder = 0;
	bool shared = !(flags & (MUTEX | RT_LOCK)) && owner & READERS;
	bool ours = is_mmap_lock(lock, task);
	__u32 seq;
	struct event *event = take(ring, &seq);

	fill(event, ring, LOCK_WAIT, flags & 63, bpf_ktime_get_ns());
	event->task.pid = SAME;
	event->task.prio = (ours ? OF_OWN_MEMORY : 0) | (shared ? OF_READERS : 0) |
			   (holder && is_mmap_lock(lock, holder) ? OF_OWNERS_MEMORY : 0);
	event->task.comm[0] = lock;
	describe_owner(&event->other, holder);
	done(event, seq);
}

/* Records functions of a stack that called for the lock, in the place of a task's name and after it. */
INLINE void note_callers(struct ring *ring, __u64 at, __u64 *frames)
{
	__u32 seq;
	struct event *event = take(ring, &seq);

	fill(event, ring, CALLERS, 0, at);
	event->task.pid = SAME;
	__builtin_memcpy(event->task.comm, frames, sizeof(event->task.comm));
	__builtin_memcpy(event->value, frames + 2, sizeof(event->value));
	done(event, seq);
}

/* A wait within another one, as for the mutex in a lock, is a part of it. So is the second part of a wait
 * for a mutex, which begins when the task ceases to spin. An interrupt waits for itself. */
SEC("tp_btf/contention_begin")
int BPF_PROG(contention_begin, void *lock, unsigned int flags)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct watched *watched;
	struct ring *ring;
	__u64 frames[CALLER_EVENTS * 5] = {};

	if (!is_watched(task) || !(watched = find(task)) || watched->lock || !(ring = this_ring()) ||
	    ring->upon)
		return 0;
	keep_of(task, task);
	watched->lock = (__u64)lock;
	watched->released = 0;
	watched->late = watched->late ? LATE_IN_LOCK : 0;
	note_wait(ring, task, (__u64)lock, flags);
	bpf_get_stack(ctx, frames, sizeof(frames), 2);
#pragma unroll
	for (int part = 0; part < CALLER_EVENTS; part++)
		note_callers(ring, bpf_ktime_get_ns(), frames + part * 5);
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(contention_end, void *lock)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct watched *watched;
	struct ring *ring;

	if (!is_watched(task) || !(watched = find(task)) || watched->lock != (__u64)lock)
		return 0;
	watched->lock = 0;
	watched->late = watched->late ? LATE : 0;
	ring = this_ring();
	if (ring)
		follow(ring, LOCK_TAKEN, bpf_ktime_get_ns(), watched->released, task->pid);
	return 0;
}

#endif
