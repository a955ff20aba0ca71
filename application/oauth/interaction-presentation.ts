import { interactiveTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { PendingPresentation } from '../../domain/oauth/interaction.ts';
import { audiencesOf, type InteractionDraft, responseModeOf } from '../../domain/oauth/interaction-draft.ts';
import {
  type PresentationAnswer,
  parseDecrypted,
  parsePresentation,
  presentationParameters,
} from '../../domain/oauth/interaction-presentation.ts';
import { defined } from '../../domain/shared/defined.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { responseFault } from '../../domain/verification/report.ts';
import { encryptionKeyOf, REQUEST_OBJECT_TYPE, SELF_ISSUED } from '../../domain/verification/request-object.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import type { VerificationPolicy } from '../../domain/verification/verification-policy.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Encryption, type EncryptionKeyPair } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { type AccessIdentity, accessIdentity } from '../verification/access-chain.ts';
import { requiresAgreedAlgorithms } from '../verification/haip.ts';
import { policyToStore } from '../verification/presentation-rules.ts';
import { PresentationVerifier } from '../verification/presentation-verifier.ts';
import { requestParts, verifierInfo } from '../verification/request-parts.ts';

export type PresentationContext = { readonly tenant: TenantConfiguration; readonly draft: InteractionDraft; readonly now: Date };

/** The endpoint that wallets post to, below the issuer of the built-in server. */
export function interactionEndpoint({ issuer }: TenantConfiguration): string {
  return `${issuer}/interactive-authorization`;
}

/** Presentations within an interactive authorization: the issuer is the verifier (OpenID4VCI 1.1 section 6). */
export class InteractionPresentation extends needs({
  encryption: Encryption,
  kms: Kms,
  random: Random,
  presentationVerifier: PresentationVerifier,
  registrationCertificates: RegistrationCertificates,
}) {
  /**
   * Creates a request from a presentation configuration. The request is signed if the configuration names a key chain;
   * otherwise the address of the endpoint identifies the verifier.
   * @throws Failure `unavailable` when the configuration was removed or its key cannot be used.
   */
  async createRequest(
    context: PresentationContext,
    configurationId: string,
  ): Promise<{ readonly pending: PendingPresentation; readonly request: JsonObject }> {
    const { tenant, draft, now } = context;
    const configuration = await tenant.presentationConfiguration(configurationId);
    if (configuration === undefined) throw unavailable(new Failure('not_found', `no presentation configuration ${configurationId}`));
    const policy = await policyToStore(tenant, configuration);
    const pending = this.#createPending(configuration, now, policy);
    const { signer, info } = await this.#verifierOf(context, configuration);
    const parameters = presentationParameters(draft, pending, info, configuration, requiresAgreedAlgorithms(tenant));
    if (signer === undefined) return { pending, request: parameters };
    return { pending, request: await this.#sign(tenant, signer, parameters, pending) };
  }

  /**
   * The signer of the request, if any, and its `verifier_info`. Problems with these are reported to the operator, not to
   * the wallet.
   */
  async #verifierOf({ tenant, now }: PresentationContext, configuration: PresentationConfiguration) {
    const { accessKeyChainId: id } = configuration;
    try {
      const signer = typeof id === 'string' ? accessIdentity(await tenant.keyChains(), now, id) : undefined;
      const info = await verifierInfo(this.ports, tenant, configuration, signer?.chain, now);
      return { signer, info };
    } catch (error) {
      // An outdated tenant is retried by the wallet.
      throw error instanceof Failure ? unavailable(error) : error;
    }
  }

  #createPending(configuration: PresentationConfiguration, now: Date, policy: VerificationPolicy | undefined): PendingPresentation {
    return {
      kind: 'presentation',
      configurationId: configuration.id,
      since: now,
      until: new Date(now.getTime() + configuration.lifeTime * 1000),
      ...requestParts(this.ports, configuration),
      ...defined({ policy }),
    };
  }

  async #sign(
    tenant: TenantConfiguration,
    { chain, clientId }: AccessIdentity,
    parameters: JsonObject,
    { since, until }: PendingPresentation,
  ): Promise<JsonObject> {
    const payload = {
      ...parameters,
      client_id: clientId,
      // OpenID4VCI 1.1 section 6.2.1.1: exactly the origin of the endpoint
      expected_origins: [new URL(tenant.issuer).origin],
      aud: SELF_ISSUED,
      iat: Math.floor(since.getTime() / 1000),
      exp: Math.floor(until.getTime() / 1000),
    };
    return { request: await signJwt(this.ports.kms, { chain, typ: REQUEST_OBJECT_TYPE, withKid: true, payload }) };
  }

  /** @throws Failure `invalid_request` for something that is not a response to the request. */
  async open(pending: PendingPresentation, text: string): Promise<PresentationAnswer> {
    const { encryption: key } = pending;
    const parsed = parsePresentation(text, key !== undefined);
    if (parsed.kind !== 'encrypted') return parsed;
    const plaintext = key === undefined ? undefined : await this.ports.encryption.decrypt(parsed.jwe, key as unknown as EncryptionKeyPair);
    return parseDecrypted(plaintext);
  }

  /** Verifies the presentations like every verifier, for the audiences of this endpoint. */
  async verify({ tenant, draft, now }: PresentationContext, pending: PendingPresentation, vpToken: Json): Promise<Verdict> {
    const endpoint = interactionEndpoint(tenant);
    const { nonce, since: requestedAt, configurationId } = pending;
    const binding = {
      audience: audiencesOf(draft, endpoint),
      recipients: [...audiencesOf(draft, endpoint), new URL(endpoint).origin],
      transcripts: () => [interactiveTranscript({ endpoint, nonce, encryptionKey: encryptionKeyOf(pending) })],
    };
    const responseMode = responseModeOf(draft, pending.encryption !== undefined);
    const request = { ...pending, responseMode };
    const task = { tenant, request, binding, requestedAt, configurationId, vpToken, now };
    try {
      return await this.ports.presentationVerifier.verify(task);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // OpenID4VP 1.0 section 8.1: a malformed vp_token
      const report = [responseFault('response', error.message, 'OpenID4VP 1.0 section 8.1')];
      return { good: false, credentials: [], report, reasons: [error.reason] };
    }
  }
}

function unavailable(cause: Error): Failure {
  return new Failure('unavailable', 'the issuer cannot request the presentation at present', { cause });
}
