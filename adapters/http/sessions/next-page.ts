import type { SessionListQuery } from '../../../application/sessions/list-sessions.ts';

/** A `Link` header to the next page (RFC 8288) that repeats what this page was asked for. */
export function nextPage(
  publicUrl: string,
  query: SessionListQuery,
  cursor: string,
): { readonly Link: string } {
  const parameters = new URLSearchParams({ limit: String(query.limit), sort: query.sort, cursor });
  if (query.status !== undefined) parameters.set('status', query.status);
  if (query.since !== undefined) parameters.set('since', query.since.toISOString());
  return { Link: `<${publicUrl}/session?${parameters}>; rel="next"` };
}
