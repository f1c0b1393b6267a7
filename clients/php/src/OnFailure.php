<?php

declare(strict_types=1);

namespace Sqlcached\Cache;

/** What happens to an invalidation that cannot be sent. */
enum OnFailure: string
{
    /** It is kept and sent again. Until it got through, nothing is read from its table. */
    case Suspend = 'suspend';

    /** As `Suspend`, and the caller gets the error. */
    case Raise = 'raise';

    /** An error is logged. The old rows are read when the daemon is back. */
    case Log = 'log';
}
