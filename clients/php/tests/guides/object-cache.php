<?php

/** The drop-in, where a program of a guide asks for it. */

declare(strict_types=1);

require dirname(__DIR__, 2) . '/wordpress/object-cache.php';
