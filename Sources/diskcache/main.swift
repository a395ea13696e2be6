// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand

// A single static file, which starts sooner than a program that can load libcurl.
DiskCacheTool.main(reaching: nil)
