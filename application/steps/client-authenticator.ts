import { Failure } from '../../domain/shared/failure.ts';
import type { UsedValue } from '../ports/store.ts';
import type { TenantView } from './tenant-views.ts';

/** What a request to an authorization server says about the client that sent it. */
export type ClientCredentials = {
  readonly form: Readonly<Record<string, string>>;
  /** Every `OAuth-Client-Attestation` header field as it came. */
  readonly attestation: readonly string[];
  /** Every `OAuth-Client-Attestation-PoP` header field as it came. */
  readonly attestationPop: readonly string[];
};

export type AuthenticatedClient = {
  /** `public`: a `client_id` that nothing proves; `anonymous`: not even that. */
  readonly kind: 'attested' | 'registered' | 'public' | 'anonymous';
  readonly clientId: string | undefined;
  /** RFC 7638 thumbprint of the attested key of this installation. */
  readonly instance?: string;
  /** Of the client's registration, if it names any. */
  readonly redirectUris?: readonly string[];
  /** To be remembered by the caller in the beat that does what the client asked for. */
  readonly used: readonly UsedValue[];
  readonly challenge: string | undefined;
};

/** Who calls the authorization server: by attestation, by a registered key, by name only, or nobody. */
export class ClientAuthenticator {
  /**
   * @param audience the issuer of the authorization server that was called.
   * @throws Failure `invalid_client`, `invalid_client_attestation`, `use_attestation_challenge`,
   *   `use_fresh_attestation`.
   */
  async execute(
    view: TenantView,
    _audience: string,
    { form, attestation, attestationPop }: ClientCredentials,
    _now: Date,
  ): Promise<AuthenticatedClient> {
    if (attestation.length > 0 || attestationPop.length > 0) {
      throw new Failure('invalid_client_attestation', 'attestations cannot be judged here');
    }
    const { walletAttestationRequired, walletClients } = await view.issuance();
    const clientId = form['client_id'];
    const isRegistered = walletClients.some((client) => client.client_id === clientId);
    if (form['client_assertion'] !== undefined || isRegistered) {
      throw new Failure('invalid_client', 'the client is not authenticated');
    }
    if (walletAttestationRequired) throw new Failure('invalid_client', 'a wallet attestation is needed');
    const kind = clientId === undefined ? 'anonymous' : 'public';
    return { kind, clientId, used: [], challenge: undefined };
  }
}
