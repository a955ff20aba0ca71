import type { CallbackContext } from '@openid4vc/oauth2';
import { Openid4vciClient } from '@openid4vc/openid4vci';
import { type CardSource, cardOf, type StoredCredential } from './cards.ts';
import type { HolderKey } from './keys.ts';
import { describeOffer, type ReadOffer } from './offers.ts';
import { type DpopSigner, type Keys, signerOf } from './openid.ts';

type Access = { readonly accessToken: string; readonly dpop: { readonly signer: DpopSigner; readonly nonce?: string } };
type Origin = Omit<CardSource, 'text' | 'holder'>;

/** A credential that the issuer deferred (OpenID4VCI 1.0 section 9). */
export type DeferredCredential = {
  readonly transactionId: string;
  readonly look: CardSource['look'];
  /** Polling interval of the issuer in seconds. */
  readonly interval: number;
};
type DeferredIssuance = DeferredCredential & { readonly read: ReadOffer; readonly origin: Origin; readonly holder: HolderKey } & Access;

export type IssuanceResult = { readonly credentials: readonly StoredCredential[]; readonly promised: readonly DeferredCredential[] };

/** A pending authorization (OpenID4VCI 1.0 section 3.4). */
export type Authorization = {
  /** The URL for the user's browser. */
  readonly url: string;
  /** @param returned the redirect of the browser. */
  complete(returned: string): Promise<IssuanceResult>;
};

export const CLIENT_ID = 'https://wallet.example.org';

/** The OpenID4VCI client of the wallet. */
export class Issuance {
  readonly #vci: Openid4vciClient;
  readonly #keys: Keys;
  readonly #notifiable = new Map<string, { read: ReadOffer; notificationId: string } & Access>();
  #pending: DeferredIssuance[] = [];

  constructor(callbacks: CallbackContext, keys: Keys) {
    this.#vci = new Openid4vciClient({ callbacks });
    this.#keys = keys;
  }

  get promised(): readonly DeferredCredential[] {
    return this.#pending;
  }

  async read(uri: string, languages: readonly string[]): Promise<ReadOffer> {
    const offer = await this.#vci.resolveCredentialOffer(uri);
    const metadata = await this.#vci.resolveIssuerMetadata(offer.credential_issuer);
    return describeOffer(offer, metadata, languages);
  }

  async accept(read: ReadOffer, txCode?: string): Promise<IssuanceResult> {
    const signer = signerOf(await this.#keys.make());
    const token = await this.#vci.retrievePreAuthorizedCodeAccessTokenFromOffer({
      credentialOffer: read.offer,
      issuerMetadata: read.metadata,
      dpop: { signer },
      ...(txCode !== undefined && { txCode }),
    });
    const dpop = { signer, ...token.dpop };
    return this.#receive(read, { accessToken: token.accessTokenResponse.access_token, dpop });
  }

  async authorize(read: ReadOffer, redirectUri: string): Promise<Authorization> {
    const { offer: credentialOffer, metadata: issuerMetadata } = read;
    const signer = signerOf(await this.#keys.make());
    const supported = issuerMetadata.credentialIssuer.credential_configurations_supported;
    const scopes = credentialOffer.credential_configuration_ids.map((id) => supported[id]?.['scope']);
    const request = await this.#vci.createAuthorizationRequestUrlFromOffer({
      credentialOffer,
      issuerMetadata,
      clientId: CLIENT_ID,
      redirectUri,
      scope: scopes.join(' '),
      dpop: { signer },
    });
    const complete = async (returned: string): Promise<IssuanceResult> => {
      const server = issuerMetadata.authorizationServers.find(({ issuer }) => issuer === request.authorizationServer);
      const answer = this.#vci.parseAndVerifyAuthorizationResponseRedirectUrl({
        url: returned,
        authorizationServerMetadata: server as never,
      });
      if (answer.code === undefined) throw new Error(`the issuer's page ended with ${String(answer.error)}`);
      const token = await this.#vci.retrieveAuthorizationCodeAccessTokenFromOffer({
        credentialOffer,
        issuerMetadata,
        authorizationCode: answer.code,
        redirectUri,
        ...(request.pkce !== undefined && { pkceCodeVerifier: request.pkce.codeVerifier }),
        additionalRequestPayload: { client_id: CLIENT_ID },
        dpop: { signer, ...request.dpop },
      });
      const dpop = { signer, ...token.dpop };
      return this.#receive(read, { accessToken: token.accessTokenResponse.access_token, dpop }, CLIENT_ID);
    };
    return { url: request.authorizationRequestUrl, complete };
  }

  /** Polls each deferred credential once. @returns the issued ones; the others stay pending. */
  async fetchPromised(): Promise<readonly StoredCredential[]> {
    const received: StoredCredential[] = [];
    const waiting: DeferredIssuance[] = [];
    for (const pending of this.#pending) {
      const { read, origin, holder, accessToken, dpop, transactionId } = pending;
      const { deferredCredentialResponse } = await this.#vci.retrieveDeferredCredentials({
        issuerMetadata: read.metadata,
        accessToken,
        transactionId,
        dpop,
      });
      const texts = textsOf(deferredCredentialResponse.credentials);
      if (texts.length === 0) waiting.push(pending);
      for (const text of texts) received.push(await cardOf({ ...origin, holder, text }));
    }
    this.#pending = waiting;
    return received;
  }

  /** Notifies the issuer that the user deleted a credential (OpenID4VCI 1.0 section 11.1). */
  async discard(card: StoredCredential): Promise<void> {
    const notifiable = this.#notifiable.get(card.id);
    this.#notifiable.delete(card.id);
    if (notifiable !== undefined) await this.#notify(notifiable, 'credential_deleted');
  }

  async #receive(read: ReadOffer, access: Access, clientId?: string): Promise<IssuanceResult> {
    const received: StoredCredential[] = [];
    const pendingBefore = this.#pending.length;
    for (const { configurationId, look, labels } of read.credentials) {
      const origin = { configurationId, issuer: read.issuer, look, labels };
      received.push(...(await this.#collect(read, access, origin, clientId)));
    }
    return { credentials: received, promised: this.#pending.slice(pendingBefore) };
  }

  async #collect(read: ReadOffer, access: Access, origin: Origin, clientId: string | undefined) {
    const { metadata: issuerMetadata } = read;
    const { configurationId: credentialConfigurationId } = origin;
    const holder = await this.#keys.make();
    const { c_nonce: nonce } = await this.#vci.requestNonce({ issuerMetadata });
    const { jwt } = await this.#vci.createCredentialRequestJwtProof({
      issuerMetadata,
      credentialConfigurationId,
      nonce,
      signer: signerOf(holder),
      ...(clientId !== undefined && { clientId }),
    });
    const { credentialResponse } = await this.#vci.retrieveCredentials({
      issuerMetadata,
      credentialConfigurationId,
      proofs: { jwt: [jwt] },
      ...access,
    });
    const { transaction_id: transactionId, notification_id: notificationId } = credentialResponse;
    if (transactionId !== undefined) {
      const interval = Number(credentialResponse.interval ?? 5);
      const { look } = origin;
      this.#pending.push({ transactionId, look, interval, read, origin, holder, ...access });
    }
    const texts = textsOf(credentialResponse.credentials);
    const cards = await Promise.all(texts.map((text) => cardOf({ ...origin, holder, text })));
    if (notificationId !== undefined) {
      const notifiable = { read, notificationId, ...access };
      for (const { id } of cards) this.#notifiable.set(id, notifiable);
      await this.#notify(notifiable, 'credential_accepted');
    }
    return cards;
  }

  async #notify(
    { read, notificationId, accessToken, dpop }: { read: ReadOffer; notificationId: string } & Access,
    event: 'credential_accepted' | 'credential_deleted',
  ): Promise<void> {
    await this.#vci.sendNotification({ issuerMetadata: read.metadata, accessToken, notification: { notificationId, event }, dpop });
  }
}

function textsOf(entries: readonly unknown[] = []): string[] {
  return entries.map((entry) => String((entry as { credential?: unknown }).credential));
}
