/* Flavours of kernel structs with the fields that only the check reads of a task, its files and its rights. */
#ifndef LATLAB_TASK_H
#define LATLAB_TASK_H

#include "kernel.h"

struct mm_struct___check {
	unsigned long locked_vm;
	unsigned long def_flags;
	unsigned long total_vm;
} CORE;

struct qstr___check {
	const unsigned char *name;
} CORE;

struct dentry___check {
	struct qstr___check d_name;
} CORE;

struct path___check {
	struct dentry___check *dentry;
} CORE;

struct inode___check {
	__u16 i_mode;
	__u32 i_rdev;
} CORE;

struct sock___check {
	long sk_rcvtimeo;
} CORE;

struct socket___check {
	struct sock___check *sk;
} CORE;

struct file___check {
	struct inode___check *f_inode;
	struct path___check f_path;
	void *private_data;
} CORE;

struct fdtable___check {
	unsigned int max_fds;
	struct file___check **fd;
} CORE;

struct files_struct___check {
	struct fdtable___check *fdt;
} CORE;

struct timerfd_ctx___check {
	int clockid;
} CORE;

struct rlimit___check {
	unsigned long rlim_cur;
} CORE;

struct signal_struct___check {
	struct {
		int counter;
	} live;	/* threads that have not ended */
	struct rlimit___check rlim[16];
	void *autogroup;
} CORE;

struct user_namespace___check {
	int level;
} CORE;

struct cred___check {
	struct {
		__u64 val;
	} cap_effective;
	struct user_namespace___check *user_ns;
} CORE;

struct task_group___check {
	struct {
		__u64 rt_runtime;
	} rt_bandwidth;
	void *autogroup;
} CORE;

struct task_struct___check {
	struct signal_struct___check *signal;
	unsigned int policy;
	unsigned long maj_flt;
	unsigned int pagefault_disabled;
	struct mm_struct___check *mm;
	struct files_struct___check *files;
	struct cred___check *cred;
	struct task_group___check *sched_task_group;
	unsigned long jobctl;
	struct task_struct___check *parent;
	int pid;
	char comm[16];
} CORE;

/* Registers of x86 and of arm64. */
struct pt_regs___check {
	unsigned long bp, r10, r9, r8, dx, si, di, orig_ax, ip, sp;
	unsigned long orig_x0, pc;
	unsigned long regs[31];
	int syscallno;
} CORE;

#define TASK(task) ((struct task_struct___check *)(task))

#endif
