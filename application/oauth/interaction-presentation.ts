import { interactiveTranscript } from '../../domain/formats/mdoc/session-transcript.ts';
import type { KeyChain } from '../../domain/keys/key-chain.ts';
import type { PendingPresentation } from '../../domain/oauth/interaction.ts';
import {
  openDecrypted,
  openPresentation,
  type PresentationAnswer,
  presentationParameters,
} from '../../domain/oauth/interaction-presentation.ts';
import { audiencesOf, type InteractionWire } from '../../domain/oauth/interaction-wire.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import { Refusal } from '../../domain/shared/refusal.ts';
import type { PresentationConfiguration } from '../../domain/verification/configuration.ts';
import { responseFault } from '../../domain/verification/report.ts';
import {
  encryptionKeyOf,
  REQUEST_OBJECT_TYPE,
  SELF_ISSUED,
} from '../../domain/verification/request-object.ts';
import type { Verdict } from '../../domain/verification/verdict.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Encryption, type EncryptionKeyPair } from '../ports/encryption.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import { RegistrationCertificates } from '../registrar/registration-certificates.ts';
import type { TenantConfiguration } from '../tenant-configuration.ts';
import { type AccessIdentity, accessIdentity } from '../verification/access-chain.ts';
import { PresentationVerifier } from '../verification/presentation-verifier.ts';
import { requestParts, verifierInfo } from '../verification/request-parts.ts';

/** Where and in which words a presentation is asked for. */
export type Asking = {
  readonly wire: InteractionWire;
  /** The interactive authorization endpoint. */
  readonly endpoint: string;
  readonly now: Date;
};

/** Presentations within an interactive authorization: the issuer is the verifier (OpenID4VCI 1.1 section 6). */
export class InteractionPresentation extends needs({
  encryption: Encryption,
  kms: Kms,
  random: Random,
  presentationVerifier: PresentationVerifier,
  registrationCertificates: RegistrationCertificates,
}) {
  /**
   * Asks by a presentation configuration. The request is signed when the configuration names the key to sign with;
   * otherwise the endpoint's own address says who asks.
   * @throws Failure `unavailable` when the configuration is gone or its key cannot be used.
   */
  async ask(
    configured: TenantConfiguration,
    configurationId: string,
    asking: Asking,
  ): Promise<{ readonly pending: PendingPresentation; readonly request: JsonObject }> {
    const configuration = await configured.presentationConfiguration(configurationId);
    if (configuration === undefined) {
      throw unavailable(new Failure('not_found', `no presentation configuration ${configurationId}`));
    }
    const pending = this.#pend(configuration, asking.now);
    const verifierInfo = await this.#verifierInfo(configured, configuration, asking.now);
    const parameters = presentationParameters(asking.wire, pending, verifierInfo);
    const { accessKeyChainId } = configuration;
    if (accessKeyChainId === null || accessKeyChainId === undefined) return { pending, request: parameters };
    return { pending, request: await this.#sign(configured, accessKeyChainId, parameters, pending, asking) };
  }

  async #verifierInfo(
    configured: TenantConfiguration,
    configuration: PresentationConfiguration,
    now: Date,
  ): Promise<readonly JsonObject[]> {
    const { accessKeyChainId: id } = configuration;
    const chain = typeof id === 'string' ? signerOf(await configured.keyChains(), now, id).chain : undefined;
    try {
      return await verifierInfo(this.ports, configured, configuration, chain, now);
    } catch (error) {
      // A tenant that is being changed is asked again by the wallet.
      throw error instanceof Failure ? unavailable(error) : error;
    }
  }

  #pend(configuration: PresentationConfiguration, now: Date): PendingPresentation {
    return {
      kind: 'presentation',
      configurationId: configuration.id,
      since: now,
      until: new Date(now.getTime() + configuration.lifeTime * 1000),
      ...requestParts(this.ports, configuration),
    };
  }

  async #sign(
    configured: TenantConfiguration,
    chainId: string,
    parameters: JsonObject,
    { since, until }: PendingPresentation,
    { endpoint, now }: Asking,
  ): Promise<JsonObject> {
    const { chain, clientId } = signerOf(await configured.keyChains(), now, chainId);
    const payload = {
      ...parameters,
      client_id: clientId,
      // OpenID4VCI 1.1 section 6.2.1.1: exactly the origin of the endpoint
      expected_origins: [new URL(endpoint).origin],
      aud: SELF_ISSUED,
      iat: Math.floor(since.getTime() / 1000),
      exp: Math.floor(until.getTime() / 1000),
    };
    return { request: await signJwt(this.ports.kms, { chain, typ: REQUEST_OBJECT_TYPE, payload }) };
  }

  /** @throws Failure `invalid_request` for what is no answer to the request. */
  async open(pending: PendingPresentation, text: string): Promise<PresentationAnswer> {
    const { encryption: key } = pending;
    const opened = openPresentation(text, key !== undefined);
    if (opened.kind !== 'encrypted') return opened;
    const plaintext =
      key === undefined
        ? undefined
        : await this.ports.encryption.decrypt(opened.jwe, key as unknown as EncryptionKeyPair);
    return openDecrypted(plaintext);
  }

  /** Judges what was presented as the verifier does everywhere, for the audiences of this endpoint. */
  async judge(
    configured: TenantConfiguration,
    pending: PendingPresentation,
    vpToken: Json,
    { wire, endpoint, now }: Asking,
  ): Promise<Verdict> {
    const { nonce, since: requestedAt, configurationId } = pending;
    const binding = {
      audience: audiencesOf(wire, endpoint),
      transcripts: () => [
        interactiveTranscript({ endpoint, nonce, encryptionKey: encryptionKeyOf(pending) }),
      ],
    };
    const task = { configured, request: pending, binding, requestedAt, configurationId, vpToken, now };
    try {
      return await this.ports.presentationVerifier.verify(task);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      // OpenID4VP 1.0 section 8.1: a vp_token without its form
      const report = [responseFault('response', error.message, 'OpenID4VP 1.0 section 8.1')];
      return { good: false, credentials: [], report, reasons: [error.reason] };
    }
  }
}

/** What keeps a key from being used is the operator's business, not the wallet's. */
function signerOf(chains: readonly KeyChain[], now: Date, chainId: string): AccessIdentity {
  try {
    return accessIdentity(chains, now, chainId);
  } catch (error) {
    throw error instanceof Failure ? unavailable(error) : error;
  }
}

function unavailable(cause: Error): Failure {
  return new Failure('unavailable', 'the issuer cannot ask for the presentation at present', { cause });
}
