import { RemoteError } from '../../application/ports/remote.ts';

/** Maximum number of redirects per call. */
export const MAX_REDIRECTS = 3;
const MAX_LENGTH = 2_048;
/** RFC 9110 section 15.4: statuses that give another location of the resource. */
const LOCATION_STATUSES: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Redirect response. Unless it is followed, the call fails with it. */
export class Redirection extends RemoteError {
  /** Unchanged header; undefined without a usable location. */
  readonly location: string | undefined;

  constructor(origin: string, status: number, location: string | readonly string[] | undefined) {
    super('redirected', `${origin} answered with a redirect (${status}).`);
    this.location = LOCATION_STATUSES.has(status) && typeof location === 'string' ? location : undefined;
  }
}

/**
 * Does not check if the address may be called.
 * @returns the target of a redirect (RFC 9110 section 10.2.2) without a fragment; undefined if it cannot be called.
 * @throws RemoteError `refused_address` for a redirect from https to http, which an attacker on the path could answer.
 */
export function redirectTarget(from: URL, { location }: Redirection): URL | undefined {
  if (location === undefined || location.length > MAX_LENGTH) return undefined;
  const target = URL.parse(location, from.href);
  if (target === null) return undefined;
  target.hash = '';
  if (from.protocol === 'https:' && target.protocol !== 'https:') {
    throw new RemoteError('refused_address', `${from.origin} leads away from https.`);
  }
  return target;
}
