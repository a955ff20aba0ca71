import type { RemoteError, RemoteFault } from '../../application/ports/remote.ts';

const FAULT_MESSAGES: Readonly<Record<RemoteFault, string>> = {
  refused_address:
    'is not an address that may be called; OUTBOUND_ALLOW names those that may be beside public https; metadata services of clouds need an entry for just them',
  timeout: 'did not answer in time',
  too_large: 'answered with too much',
  unreachable: 'could not be reached',
  busy: 'could not be waited for, as this service has too many calls under way',
  redirected: 'answered with a redirect that is not followed; the final address is needed',
};

/** @param overrides more specific messages for the kind of address. */
export function faultMessage({ fault, detail }: RemoteError, overrides: Partial<Record<RemoteFault, string>> = {}): string {
  const words = overrides[fault] ?? FAULT_MESSAGES[fault];
  return detail === undefined ? words : `${words}: ${detail}`;
}
