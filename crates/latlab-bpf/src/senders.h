/* Function calls on another CPU: who asked for which function. Kernels from 6.4 on report both ends. */
#ifndef LATLAB_SENDERS_H
#define LATLAB_SENDERS_H

#include "note.h"

/* Requests that may wait at once; the oldest is forgotten first. A request is used again by its CPU. */
#define REQUESTS 1024

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, REQUESTS);
	__type(key, __u64);	/* address of the request */
	__type(value, struct who);
} senders SEC(".maps");

SEC("tp_btf/csd_queue_cpu")
int BPF_PROG(csd_queue_cpu, unsigned int cpu, unsigned long callsite, void *function, void *request)
{
	__u64 key = (__u64)request;
	struct who sender = {};

	describe(&sender, bpf_get_current_task_btf());
	sender.cpu = bpf_get_smp_processor_id();
	bpf_map_update_elem(&senders, &key, &sender, 0);
	return 0;
}

/* The function follows the PID that says that the task is the one before. It is a raw tracepoint: the
 * verifier refuses pointers to functions elsewhere. */
SEC("raw_tp/csd_function_entry")
int BPF_PROG(csd_function_entry, void *function, void *request)
{
	struct ring *ring = this_ring();
	__u64 key = (__u64)request;
	struct who *sender = bpf_map_lookup_elem(&senders, &key);
	__u32 seq;

	if (!ring || !sender)
		return 0;
	struct event *event = take(ring, &seq);

	fill(event, ring, CALLED, 0, bpf_ktime_get_ns());
	event->task.pid = SAME;
	event->task.comm[0] = (__u64)function;
	event->other = *sender;
	done(event, seq);
	return 0;
}

#endif
