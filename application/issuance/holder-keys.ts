import type { CredentialConfiguration } from '../../domain/issuance/configuration.ts';
import { parseProofs } from '../../domain/issuance/credential-request.ts';
import { OpenedKeyAttestations } from '../../domain/issuance/key-attestation.ts';
import { assertJwtProofClaims, parseJwtProof } from '../../domain/issuance/proof.ts';
import { mostCopies } from '../../domain/issuance/reuse-policy.ts';
import { isAllowed } from '../../domain/issuance/wallet-algorithms.ts';
import { parseChallenge } from '../../domain/oauth/challenge.ts';
import type { UsedValue } from '../../domain/oauth/used-value.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import { type PublicJwk, thumbprint } from '../../domain/shared/jwk.ts';
import type { WalletStatus } from '../../domain/status-lists/wallet-status.ts';
import { needs } from '../needs.ts';
import { ServiceSettings } from '../ports/settings.ts';
import { Signatures } from '../ports/signatures.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type JudgedAttestation, KeyAttestations } from './key-attestations.ts';

/** Purpose of a nonce that goes into a proof. */
export const C_NONCE = 'c_nonce';

export type ProvenKeys = {
  /** One credential each; empty for a configuration that binds no key. */
  readonly holderKeys: readonly PublicJwk[];
  /** The nonces that the proofs carry, to be spent by the caller's commit. */
  readonly used: readonly UsedValue[];
  /** Where the attestations of the keys would be revoked. */
  readonly statuses: readonly WalletStatus[];
};

type Question = {
  readonly configured: TenantConfiguration;
  readonly configuration: CredentialConfiguration;
  readonly clientId: string | undefined;
  readonly now: Date;
  /** Most credentials of one response. */
  readonly limit: number;
  /** Whether what proofs say about their keys can be judged, or has to be there. */
  readonly attestations: 'ignored' | 'judged' | 'required';
  readonly opened: OpenedKeyAttestations;
};

/** What the proofs of one request say. */
type Gathered = {
  /** Proven keys by RFC 7638 thumbprint. */
  readonly keys: Map<string, PublicJwk>;
  readonly nonces: Set<string>;
  /** The attestations that have to be judged. */
  readonly attested: Set<string>;
};

/** Checks the proofs of a credential request (OpenID4VCI 1.0 appendix F). */
export class HolderKeys extends needs({ signatures: Signatures, keyAttestations: KeyAttestations, settings: ServiceSettings }) {
  /**
   * Signatures and structure before nonces, so `invalid_nonce` always means that a new nonce would do.
   * @param clientId of the access token; absent for an anonymous wallet.
   * @throws Failure `invalid_proof`, `invalid_nonce`, `invalid_credential_request`.
   */
  async verifyProofs(
    configured: TenantConfiguration,
    configuration: CredentialConfiguration,
    body: JsonObject,
    clientId: string | undefined,
    now: Date,
  ): Promise<ProvenKeys> {
    const { batchSize, walletProviderTrustLists: lists } = await configured.issuance();
    const limit = mostCopies(configuration, batchSize);
    const proofs = parseProofs(body, configuration, limit);
    if (proofs === undefined) return { holderKeys: [], used: [], statuses: [] };
    const required = configuration.keyAttestationsRequired ?? undefined;
    const question: Question = {
      configured,
      configuration,
      clientId,
      now,
      limit,
      // Nobody can judge an attestation without trust lists; where it is not asked for, the proven key counts alone.
      attestations: required !== undefined ? 'required' : lists.length > 0 ? 'judged' : 'ignored',
      opened: new OpenedKeyAttestations(),
    };
    if (proofs.type === 'attestation') return this.#byAttestation(question, proofs.texts[0] ?? '');
    const issuance = await configured.issuance();
    const gathered = this.#gather(question, proofs.texts);
    if (![...gathered.keys.values()].every((key) => isAllowed(key, issuance)))
      throw new Failure('invalid_proof', 'this issuer does not take the alg of the proof');
    if (gathered.attested.size > 0) return this.#withAttestations(question, gathered);
    return { holderKeys: [...gathered.keys.values()], used: this.#readNonces(configured, gathered.nonces, now), statuses: [] };
  }

  #gather({ configured, clientId, now, attestations, opened }: Question, texts: readonly string[]): Gathered {
    const gathered: Gathered = { keys: new Map(), nonces: new Set(), attested: new Set() };
    for (const text of texts) {
      const proof = parseJwtProof(text, opened);
      // OpenID4VCI 1.0 appendix F.4
      if (!this.ports.signatures.verify(proof.key, proof.signingInput, proof.signature, 'once')) {
        throw new Failure('invalid_proof', 'the signature of the proof is wrong');
      }
      gathered.nonces.add(assertJwtProofClaims(proof, { audience: configured.issuer, clientId, now }));
      // OpenID4VCI 1.0 section 8.3: a key binds at most one credential
      const name = thumbprint(proof.key);
      if (gathered.keys.has(name)) throw new Failure('invalid_proof', 'the same key stands in two proofs');
      gathered.keys.set(name, proof.key);
      if (attestations === 'ignored') continue;
      if (proof.keyAttestation !== undefined) gathered.attested.add(proof.keyAttestation);
      else if (attestations === 'required') {
        // OpenID4VCI 1.0 appendix F.1
        throw new Failure('invalid_proof', 'this credential needs a key_attestation in each proof');
      }
    }
    return gathered;
  }

  /** OpenID4VCI 1.0 appendix F.1: one credential for each attested key, also for those that signed nothing. */
  async #withAttestations(question: Question, { keys, nonces, attested }: Gathered): Promise<ProvenKeys> {
    const judged: JudgedAttestation[] = [];
    for (const text of attested) judged.push(await this.#judge(question, text, 'jwt'));
    const all = new Map(keys);
    for (const [name, key] of judged.flatMap((attestation) => [...attestation.keys])) {
      if (all.size < question.limit) all.set(name, key);
    }
    const allNonces = new Set([...nonces, ...judged.flatMap(({ nonce }) => nonce ?? [])]);
    const used = this.#readNonces(question.configured, allNonces, question.now);
    const { configured, now } = question;
    const statuses = await this.ports.keyAttestations.verifyStatuses(configured, judged, now);
    return { holderKeys: [...all.values()], used, statuses };
  }

  /** OpenID4VCI 1.0 appendix F.3: the provider vouches for the keys, and nobody proves to have them. */
  async #byAttestation(question: Question, text: string): Promise<ProvenKeys> {
    const attestation = await this.#judge(question, text, 'attestation');
    if (attestation.nonce === undefined) throw new Failure('invalid_proof', 'the key attestation has no nonce');
    const used = this.#readNonces(question.configured, new Set([attestation.nonce]), question.now);
    const { configured, now, limit } = question;
    const statuses = await this.ports.keyAttestations.verifyStatuses(configured, [attestation], now);
    return { holderKeys: [...attestation.keys.values()].slice(0, limit), used, statuses };
  }

  #judge({ configured, configuration, now, opened }: Question, text: string, proofType: 'jwt' | 'attestation'): Promise<JudgedAttestation> {
    const levels = configuration.keyAttestationsRequired;
    return this.ports.keyAttestations.verify(configured, opened.open(text), { proofType, levels, now });
  }

  #readNonces(configured: TenantConfiguration, nonces: ReadonlySet<string>, now: Date): UsedValue[] {
    return [...nonces].map((nonce) => {
      const fresh = parseChallenge(this.ports.settings.nonceKeys, configured.tenantId, C_NONCE, now, nonce);
      if (fresh === undefined) throw new Failure('invalid_nonce', 'the nonce is unknown or too old; get a new one');
      return { kind: 'c_nonce', ...fresh };
    });
  }
}
