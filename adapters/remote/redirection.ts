import { RemoteError } from '../../application/ports/remote.ts';

/** How often a call is sent on, at most. */
export const MAX_REDIRECTS = 3;
const MAX_LENGTH = 2_048;
/** RFC 9110 section 15.4: what says that the thing asked for is elsewhere. */
const LEADS_ELSEWHERE: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** An answer that sends the caller on. Without anybody who follows, the call has failed with it. */
export class Redirection extends RemoteError {
  /** As it came; undefined where it leads nowhere. */
  readonly location: string | undefined;

  constructor(origin: string, status: number, location: string | readonly string[] | undefined) {
    super('redirected', `${origin} answered with a redirect (${status}).`);
    this.location = LEADS_ELSEWHERE.has(status) && typeof location === 'string' ? location : undefined;
  }
}

/**
 * Whether an address may be called is not asked here.
 * @returns where a redirection leads (RFC 9110 section 10.2.2), without a fragment; undefined for none that could be called.
 * @throws RemoteError `refused_address` for a way from https to http, where anybody between could answer.
 */
export function nextAddress(from: URL, { location }: Redirection): URL | undefined {
  if (location === undefined || location.length > MAX_LENGTH) return undefined;
  const next = URL.parse(location, from.href);
  if (next === null) return undefined;
  next.hash = '';
  if (from.protocol === 'https:' && next.protocol !== 'https:') {
    throw new RemoteError('refused_address', `${from.origin} leads away from https.`);
  }
  return next;
}
