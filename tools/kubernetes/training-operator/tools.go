//go:build tools

// The training-operator, pinned in go.mod: what muster operator is compared with. Its main package is built by ../build; its definition of PyTorchJobs and its
// examples are read from its module when a test runs.
package tools

import _ "github.com/kubeflow/training-operator/cmd/training-operator.v1"
