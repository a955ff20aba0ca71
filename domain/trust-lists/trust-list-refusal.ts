/** Reasons for not using a trust list, for the operator's log; a wallet only learns that its provider is not trusted. */
export type TrustListFault =
  | 'unavailable'
  | 'malformed'
  | 'algorithm'
  | 'critical_extension'
  | 'untrusted_signer'
  | 'signature'
  | 'version'
  | 'from_the_future'
  | 'outdated'
  | 'sequence_went_back'
  | 'sequence_reused'
  | 'sequence_jumped'
  /** The address contains the list of another scheme. */
  | 'another_list';

export class TrustListRefusal extends Error {
  readonly fault: TrustListFault;
  readonly detail: string | undefined;

  /** @param detail names and numbers, never content of the list. */
  constructor(fault: TrustListFault, detail?: string) {
    super(detail === undefined ? fault : `${fault}: ${detail}`);
    this.name = 'TrustListRefusal';
    this.fault = fault;
    this.detail = detail;
  }
}
