/* struct commented { int a; }; */
#include <stdio.h>
#define MAX 3
#define WRAP(x) do { \
    x; } while (0)

typedef struct client {
	int fd;
} client;

enum state { OPEN, CLOSED };

static struct client *find(const char *name,
			   int len)
{
	struct client *c = NULL; /* } */
	if (len > MAX) {
		return "}" ? c : NULL;
	}
	return c;
}

void defines(void) {
#define LOCAL 4
	int a = LOCAL;
}
#undef LOCAL

int local(void)
{
	struct pair {
		int a;
	} p = { 1 };
	typedef int number;
	return p.a;
}

static const struct ops ops = {
	.run = local,
};
