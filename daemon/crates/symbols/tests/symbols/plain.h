#ifdef __cplusplus
extern "C" {
#endif
struct point { int x; };
static inline int norm(struct point *class)
{
	return class->x;
}
#ifdef __cplusplus
}
#endif
