/* What stops a task, in the programs of check.bpf.c. */
#ifndef LATLAB_CHECK_STOP_H
#define LATLAB_CHECK_STOP_H

/* How a task that leaves its CPU in this state is stopped. */
INLINE enum stop stop(struct task_struct *task, unsigned int state)
{
	if (state & 4 /* __TASK_STOPPED */)
		return BY_SIGNAL;
	if (state & 8 /* __TASK_TRACED */)
		return BY_TRACER;
	/* The freezer of control groups lets tasks sleep like any other. */
	bool frozen = state & 0x8000 /* TASK_FROZEN */ ||
		      (state && TASK(task)->jobctl & 1 << 23 /* JOBCTL_TRAP_FREEZE */);

	return frozen ? BY_FREEZER : RUNS;
}

/* Adds to the OUT of a stopped task who stopped it. */
INLINE void describe_stop(struct note *note, struct task_struct *task, enum stop how)
{
	__u64 by = 0;

	if (how == BY_SIGNAL) {
		struct process *process = process_of(task);

		if (process) {
			by = process->stopper;
			__builtin_memcpy(&note->value[8], process->stopper_name, 16);
		}
	} else if (how == BY_TRACER) {
		struct task_struct___check *tracer = TASK(task)->parent;

		by = BPF_CORE_READ(tracer, pid);
		bpf_probe_read_kernel(&note->value[8], 16, &tracer->comm);
	}
	note->value[6] = by << 8 | how;
}

#endif
