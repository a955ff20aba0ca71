/**
 * What nearly every page needs. The build gives it to each page, so that it becomes one file that comes with the first page: a
 * file for each set of pages that share something would cost a request each, and more in headers than in bytes.
 */
import '@preact/signals';
import 'preact/hooks';
import 'preact/jsx-runtime';
import '../api/call.ts';
import '../parts/about.tsx';
import '../parts/badge.tsx';
import '../parts/confirm.tsx';
import '../parts/copy.tsx';
import '../parts/problem.tsx';
import '../parts/said.tsx';
import '../parts/table.tsx';
import '../parts/time.tsx';
import '../parts/use-asked.ts';
import '../pages/decoder/pasted.ts';
import './identities.ts';
import './keep-focus.ts';
import './openable.ts';
import './place.ts';
import './playing.ts';
