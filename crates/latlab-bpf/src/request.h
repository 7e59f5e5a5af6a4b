/* Requests for a real-time policy or for locked memory, in the programs of check.bpf.c. */
#ifndef LATLAB_REQUEST_H
#define LATLAB_REQUEST_H

/* The rights by which the kernel judges requests of a thread. Capabilities have the same bits in all forms
 * of the set. */
INLINE __u64 rights(struct task_struct *task)
{
	struct cred___check *cred = TASK(task)->cred;
	struct task_group___check *group = 0;
	__u64 capabilities = 0, rights = 0;

	bpf_probe_read_kernel(&capabilities, sizeof(capabilities), &cred->cap_effective);
	if (capabilities >> 23 & 1)
		rights |= MAY_SCHEDULE;
	if (capabilities >> 14 & 1)
		rights |= MAY_LOCK;
	if (BPF_CORE_READ(cred, user_ns, level) > 0)
		rights |= IN_NAMESPACE;
	if (bpf_core_field_exists(TASK(task)->sched_task_group) &&
	    bpf_core_field_exists(group->rt_bandwidth.rt_runtime)) {
		bool is_automatic = false;

		group = TASK(task)->sched_task_group;
		if (bpf_core_field_exists(group->autogroup))
			is_automatic = BPF_CORE_READ(group, autogroup);
		if (!is_automatic && !BPF_CORE_READ(group, rt_bandwidth.rt_runtime))
			rights |= WITHOUT_BUDGET;
	}
	return rights;
}

/* The policy and the priority that a system call asks for. */
INLINE void read_scheduling(__u64 *value, __u64 number, __u64 second, __u64 third)
{
	__u32 words[6] = {};

	if (number == check_settings.sched_setattr) {
		bpf_probe_read_user(words, sizeof(words), (void *)second);
		value[3] = words[1];
		value[4] = words[5];
		return;
	}
	bool is_param = number == check_settings.sched_setparam;

	bpf_probe_read_user(words, 4, (void *)(is_param ? second : third));
	value[3] = is_param ? (__u64)-1 : second;
	value[4] = words[0];
}

INLINE bool is_of_scheduling(__u64 number)
{
	return number == check_settings.sched_setscheduler ||
	       number == check_settings.sched_setparam || number == check_settings.sched_setattr;
}

INLINE bool is_request(__u64 number)
{
	return is_of_scheduling(number) || number == check_settings.mlockall ||
	       number == check_settings.mlock || number == check_settings.mlock2;
}

/* A request for a real-time policy or for locked memory, by any thread of a watched process. */
static __noinline int request(struct pt_regs___check *regs, __s64 number, __s64 result)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 process = task->tgid;
	__u64 arguments[6];

	if (!bpf_map_lookup_elem(&processes, &process))
		return 0;
	struct long_note *note = begin_long(task, REQUEST);

	if (!note)
		return 0;
	__u64 *value = note->note.value;
	struct signal_struct___check *signal = TASK(task)->signal;
	struct mm_struct___check *mm = TASK(task)->mm;

	read_arguments(arguments, regs);
	value[0] = number;
	value[1] = result;
	value[2] = arguments[0];
	value[3] = arguments[1];
	if (is_of_scheduling(number))
		read_scheduling(value, number, arguments[1], arguments[2]);
	value[5] = BPF_CORE_READ(signal, rlim[14 /* RLIMIT_RTPRIO */].rlim_cur);
	value[6] = BPF_CORE_READ(signal, rlim[8 /* RLIMIT_MEMLOCK */].rlim_cur);
	value[7] = rights(task);
	value[8] = mm ? BPF_CORE_READ(mm, total_vm) : 0;
	copy_stack(note, regs);
	submit(note);
	return 0;
}

#endif
