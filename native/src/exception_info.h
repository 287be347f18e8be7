/* What a program is told when a task fails; see exception_info.c. */
#ifndef HOSTACL_EXCEPTION_INFO_H
#define HOSTACL_EXCEPTION_INFO_H

struct stream;
struct task;

/* Calls the function that the program set for failing tasks, if any. The table lock is held and given up meanwhile. */
void exception_report(const struct stream *stream, const struct task *task, int code);

/* No function is set. */
void exception_reset(void);

#endif
