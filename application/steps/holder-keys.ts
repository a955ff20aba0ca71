import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { readProofs } from '../../domain/issuance/credential-request.ts';
import { acceptJwtProof, openJwtProof } from '../../domain/issuance/proof.ts';
import { readChallenge } from '../../domain/oauth/challenge.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import { issuerIdentifier, type ServiceSettings } from '../ports/settings.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { UsedValue } from '../ports/store.ts';
import type { TenantView } from './tenant-views.ts';

type Ports = { readonly signatures: Signatures; readonly settings: ServiceSettings };

/** Purpose of a nonce that goes into a proof. */
export const C_NONCE = 'c_nonce';

export type ProvenKeys = {
  /** One credential each; empty for a configuration that binds no key. */
  readonly holderKeys: readonly PublicJwk[];
  /** The nonces that the proofs carry, to be remembered in the caller's beat. */
  readonly used: readonly UsedValue[];
};

/** Checks the proofs of a credential request (OpenID4VCI 1.0 appendix F). */
export class HolderKeys {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * Signatures and structure before nonces, so `invalid_nonce` always means that a new nonce would do.
   * @param clientId of the access token; absent for an anonymous wallet.
   * @throws Failure `invalid_proof`, `invalid_nonce`, `invalid_credential_request`.
   */
  async prove(
    view: TenantView,
    configuration: CredentialConfiguration,
    body: JsonObject,
    clientId: string | undefined,
    now: Date,
  ): Promise<ProvenKeys> {
    const { batchSize } = await view.issuance();
    const audience = issuerIdentifier(this.#ports.settings, view.tenantId);
    const keys = new Map<string, PublicJwk>();
    const nonces = new Set<string>();
    for (const text of readProofs(body, configuration.keyBinding, batchSize)) {
      const proof = openJwtProof(text);
      // OpenID4VCI 1.0 appendix F.4
      if (!this.#ports.signatures.verify(proof.key, proof.signingInput, proof.signature)) {
        throw new Failure('invalid_proof', 'the signature of the proof is wrong');
      }
      nonces.add(acceptJwtProof(proof, { audience, clientId, now }));
      // OpenID4VCI 1.0 section 8.3: a key binds at most one credential
      const name = thumbprint(proof.key);
      if (keys.has(name)) throw new Failure('invalid_proof', 'the same key stands in two proofs');
      keys.set(name, proof.key);
    }
    return { holderKeys: [...keys.values()], used: this.#readNonces(view, nonces, now) };
  }

  #readNonces(view: TenantView, nonces: ReadonlySet<string>, now: Date): UsedValue[] {
    return [...nonces].map((nonce) => {
      const fresh = readChallenge(this.#ports.settings.nonceKeys, view.tenantId, C_NONCE, now, nonce);
      if (fresh === undefined)
        throw new Failure('invalid_nonce', 'the nonce is unknown or too old; get a new one');
      return { kind: 'c_nonce', ...fresh };
    });
  }
}
