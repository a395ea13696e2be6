// SPDX-License-Identifier: Apache-2.0

// The module that programs import to share a cache between machines: DiskCache, and `SharedCache(at:configuration:remote:)`.

@_exported public import DiskCache
@_exported public import RemoteStore
