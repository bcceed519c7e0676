// Package podgroups pins the module from which Volcano's own PodGroup CRD is generated when the tests run.
package podgroups

import _ "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
