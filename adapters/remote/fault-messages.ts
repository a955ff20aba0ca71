import type { RemoteError, RemoteFault } from '../../application/ports/remote.ts';

const FAULT_MESSAGES: Readonly<Record<RemoteFault, string>> = {
  refused_address:
    'is a blocked address; add it to OUTBOUND_ALLOW if it is not public https; metadata services of clouds require an exact entry',
  timeout: 'did not answer in time',
  too_large: 'returned a response that is too large',
  unreachable: 'could not be reached',
  busy: 'could not be called, because this service has too many calls in progress',
  redirected: 'answered with a redirect that is not followed; the final address is needed',
};

/** @param overrides more specific messages for the kind of address. */
export function faultMessage({ fault, detail }: RemoteError, overrides: Partial<Record<RemoteFault, string>> = {}): string {
  const words = overrides[fault] ?? FAULT_MESSAGES[fault];
  return detail === undefined ? words : `${words}: ${detail}`;
}
