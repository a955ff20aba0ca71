/** Why a trust list is not used. For the operator's log; a wallet learns only that its provider is not trusted. */
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
  /** Another scheme's list stands at the address. */
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
