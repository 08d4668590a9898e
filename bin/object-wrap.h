// Put before every C++ file of ssh2's binding when it is built. Since 24.19 node::ObjectWrap takes its cleanup hook
// back in its destructor, which the garbage collector runs without an environment: the process aborts as soon as a
// cipher is collected (nodejs/node#65446, mscdex/ssh2#1511). The binding has no need of the hook.
#include <node.h>
#define AddEnvironmentCleanupHook(...)
#define RemoveEnvironmentCleanupHook(...)
