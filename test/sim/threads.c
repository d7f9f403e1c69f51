/*-------------------------------------------------------------------------
 *
 * threads.c
 *	  Logical threads in virtual time.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "threads.h"

/* Only what is touched exists. */
#define STACK_BYTES		((size_t) 4 * 1024 * 1024)

VThread    *vthread_current;

static VThread threads[MAX_CORES];
static char *stacks[MAX_CORES];
static void *outside;
static void (*run_body) (uint32_t i);

/* Those that can go on, but for the current one: a heap, the least first. */
static VThread *heap[MAX_CORES];
static uint32_t heap_size;

#if defined(__x86_64__)

/*
 * Saves what the caller may expect to find again, and goes on where "to" was
 * saved.  swapcontext would make two system calls.
 */
void		vthread_switch(void **from, void *to);
__asm__(
		".text\n"
		".globl vthread_switch\n"
		".type vthread_switch, @function\n"
		"vthread_switch:\n"
		"	pushq %rbp\n"
		"	pushq %rbx\n"
		"	pushq %r12\n"
		"	pushq %r13\n"
		"	pushq %r14\n"
		"	pushq %r15\n"
		"	movq %rsp, (%rdi)\n"
		"	movq %rsi, %rsp\n"
		"	popq %r15\n"
		"	popq %r14\n"
		"	popq %r13\n"
		"	popq %r12\n"
		"	popq %rbx\n"
		"	popq %rbp\n"
		"	ret\n"
		".size vthread_switch, . - vthread_switch\n"
);

/* What vthread_switch finds on a new stack: six registers, where to go. */
static void *
new_stack(char *stack, void (*start) (void))
{
	void	  **top = (void **) (stack + STACK_BYTES) - 2;

	/* As after a call: 8 bytes off a multiple of 16. */
	*--top = NULL;
	*--top = (void *) start;
	return top - 6;
}

#else

#include <ucontext.h>

static ucontext_t contexts[MAX_CORES + 1];
static uint32_t ncontexts;

static void
vthread_switch(void **from, void *to)
{
	if (*from == NULL)
		*from = &contexts[MAX_CORES];
	swapcontext(*from, to);
}

static void *
new_stack(char *stack, void (*start) (void))
{
	ucontext_t *context = &contexts[ncontexts++ % MAX_CORES];

	getcontext(context);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_BYTES;
	context->uc_link = NULL;
	makecontext(context, start, 0);
	return context;
}

#endif

/* Of equal clocks the lower number goes first: runs can be repeated. */
static inline bool
earlier(const VThread *a, const VThread *b)
{
	return a->clock < b->clock || (a->clock == b->clock && a->number < b->number);
}

static void
heap_down(uint32_t i)
{
	VThread    *moved = heap[i];

	for (;;)
	{
		uint32_t	child = 2 * i + 1;

		if (child >= heap_size)
			break;
		if (child + 1 < heap_size && earlier(heap[child + 1], heap[child]))
			child++;
		if (!earlier(heap[child], moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
}

static void
heap_add(VThread *thread)
{
	uint32_t	i = heap_size++;

	while (i > 0 && earlier(thread, heap[(i - 1) / 2]))
	{
		heap[i] = heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	heap[i] = thread;
}

static VThread *
heap_take(void)
{
	VThread    *least = heap[0];

	heap[0] = heap[--heap_size];
	if (heap_size > 0)
		heap_down(0);
	return least;
}

static void
go_to(VThread *next)
{
	VThread    *from = vthread_current;

	vthread_current = next;
	vthread_switch(&from->stack_pointer, next->stack_pointer);
}

void
vthread_sync(Picoseconds slack)
{
	VThread    *me = vthread_current;
	VThread    *next;

	if (heap_size == 0 || heap[0]->clock + slack >= me->clock)
		return;
	next = heap[0];
	heap[0] = me;
	heap_down(0);
	go_to(next);
}

/* The current thread cannot go on. */
static void
give_up(void)
{
	if (heap_size == 0)
	{
		fprintf(stderr, "all who are left wait for each other\n");
		abort();
	}
	go_to(heap_take());
}

void
vthread_sleep(const void *word)
{
	vthread_current->sleeps = word;
	give_up();
}

void
vthread_wake(const void *word, Picoseconds when)
{
	for (uint32_t i = 0; i < MAX_CORES; i++)
	{
		VThread    *thread = &threads[i];

		if (thread->sleeps != word)
			continue;
		thread->sleeps = NULL;
		if (thread->clock < when)
			thread->clock = when;
		heap_add(thread);
	}
}

static void
thread_main(void)
{
	VThread    *me = vthread_current;

	run_body(me->number);
	me->done = true;
	for (uint32_t i = 0; i < MAX_CORES; i++)
	{
		if (threads[i].stack_pointer != NULL && !threads[i].done)
			give_up();
	}
	vthread_switch(&me->stack_pointer, outside);
}

void
vthreads_run(uint32_t n, void (*body) (uint32_t i))
{
	run_body = body;
	heap_size = 0;
	memset(threads, 0, sizeof(threads));
	for (uint32_t i = 0; i < n; i++)
	{
		if (stacks[i] == NULL)
		{
			stacks[i] = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
							 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (stacks[i] == MAP_FAILED)
			{
				perror("mmap");
				exit(1);
			}
		}
		threads[i].number = i;
		threads[i].stack_pointer = new_stack(stacks[i], thread_main);
		heap_add(&threads[i]);
	}
	vthread_current = heap_take();
	vthread_switch(&outside, vthread_current->stack_pointer);
	vthread_current = NULL;
}
