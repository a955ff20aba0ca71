import type { RemoteError, RemoteFault } from '../../application/ports/remote.ts';

/** What `Remote` says of an address in other words, for the operator. */
const FAULT_WORDS: Readonly<Record<RemoteFault, string>> = {
  refused_address:
    'is not an address that may be called; OUTBOUND_ALLOW names those that may be beside public https; metadata services of clouds need an entry for just them',
  timeout: 'did not answer in time',
  too_large: 'answered with too much',
  unreachable: 'could not be reached',
  busy: 'could not be waited for, as this service has too many calls under way',
  redirected: 'answered with a redirect that is not followed; the final address is needed',
};

/** @param own words that say it better for the kind of address. */
export function faultWords({ fault, detail }: RemoteError, own: Partial<Record<RemoteFault, string>> = {}): string {
  const words = own[fault] ?? FAULT_WORDS[fault];
  return detail === undefined ? words : `${words}: ${detail}`;
}
