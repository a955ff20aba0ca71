import { createHash, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import {
  type CallbackContext,
  clientAuthenticationAnonymous,
  type Jwk,
  type JwtSigner,
  Oauth2Client,
  setGlobalConfig,
} from '@openid4vc/oauth2';
import { Openid4vciClient } from '@openid4vc/openid4vci';
import { Openid4vpClient } from '@openid4vc/openid4vp';
import { CompactEncrypt, exportJWK, importJWK, SignJWT } from 'jose';
import {
  type Key,
  type PresentationRequest,
  presentations,
  type StoredCredential,
  toPresentationRequest,
  toStoredCredentials,
  verifySigner,
} from './credentials.ts';
import { makeAttestedWallet, type WalletUnit } from './wallet-unit.ts';

/** A deferred credential, and the data to fetch it. */
type Promised = {
  readonly configurationId: string;
  readonly transactionId: string;
  readonly holders: readonly Key[];
  readonly asking: Parameters<Openid4vciClient['retrieveDeferredCredentials']>[0];
};

/** Data to request the same credential again. */
type Renewable = {
  readonly credentialOffer: Offer;
  readonly issuerMetadata: IssuerMetadata;
  readonly dpopSigner: JwtSigner & { method: 'jwk' };
  readonly refreshToken: string;
  readonly server: string;
};

type Offer = Awaited<ReturnType<Openid4vciClient['resolveCredentialOffer']>>;
type IssuerMetadata = Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>;
type Token = Awaited<ReturnType<Openid4vciClient['retrievePreAuthorizedCodeAccessTokenFromOffer']>>;

/**
 * A wallet of independent libraries: @openid4vc for the protocols, jose for signatures and encryption. It shares no code
 * with the service, so its acceptance is evidence.
 */
export class Openid4vcWallet {
  readonly credentials: StoredCredential[] = [];
  readonly promised: Promised[] = [];
  /** Grants of the last offer. */
  renewable: Renewable | undefined;
  readonly #keys = new Map<string, Key>();
  readonly #unit: WalletUnit | undefined;
  readonly #clientId: string;
  readonly #oauth: Oauth2Client;
  readonly #vci: Openid4vciClient;
  readonly #vp: Openid4vpClient;

  /** @param unit absent: this wallet and its keys are not attested. */
  constructor(fetch: typeof globalThis.fetch = globalThis.fetch, unit?: WalletUnit) {
    // Plain http is only for loopback addresses, as in a demonstration.
    setGlobalConfig({ allowInsecureUrls: true });
    this.#unit = unit;
    this.#clientId = unit?.clientId ?? CLIENT_ID;
    const callbacks = this.#callbacks(fetch);
    this.#oauth = new Oauth2Client({ callbacks });
    this.#vci = new Openid4vciClient({ callbacks });
    this.#vp = new Openid4vpClient({ callbacks });
  }

  resolveOffer(uri: string) {
    return this.#vci.resolveCredentialOffer(uri);
  }

  /** Runs the whole pre-authorized code flow and keeps the credentials. */
  async accept(
    uri: string,
    options: { readonly txCode?: string /** Keys for each credential. */; readonly batch?: number } = {},
  ): Promise<readonly StoredCredential[]> {
    const credentialOffer = await this.#vci.resolveCredentialOffer(uri);
    const issuerMetadata = await this.#vci.resolveIssuerMetadata(credentialOffer.credential_issuer);
    const dpopKey = await this.#newKey();
    const dpopSigner = { method: 'jwk' as const, alg: 'ES256', publicJwk: dpopKey.publicJwk };
    const token = await this.#vci.retrievePreAuthorizedCodeAccessTokenFromOffer({
      credentialOffer,
      issuerMetadata,
      dpop: { signer: dpopSigner },
      ...(options.txCode === undefined ? {} : { txCode: options.txCode }),
      ...(this.#unit !== undefined && { additionalRequestPayload: { client_id: this.#clientId } }),
    });
    return this.#receive(credentialOffer, issuerMetadata, token, dpopSigner, undefined, options.batch);
  }

  /**
   * Runs the whole authorization code flow (OpenID4VCI 1.0 section 3.4).
   * @param browse takes the address of the authorization endpoint to the user and comes back with where the browser
   *   was sent.
   */
  async acceptByCode(
    uri: string,
    browse: (authorizationUrl: string) => Promise<string>,
    options: { readonly batch?: number } = {},
  ): Promise<readonly StoredCredential[]> {
    const credentialOffer = await this.#vci.resolveCredentialOffer(uri);
    const issuerMetadata = await this.#vci.resolveIssuerMetadata(credentialOffer.credential_issuer);
    const dpopKey = await this.#newKey();
    const dpopSigner = { method: 'jwk' as const, alg: 'ES256', publicJwk: dpopKey.publicJwk };
    const request = await this.#vci.createAuthorizationRequestUrlFromOffer({
      credentialOffer,
      issuerMetadata,
      clientId: this.#clientId,
      redirectUri: this.#redirectUri,
      scope: findScopes(issuerMetadata, credentialOffer.credential_configuration_ids),
      dpop: { signer: dpopSigner },
    });
    const url = await browse(request.authorizationRequestUrl);
    const server = issuerMetadata.authorizationServers.find(({ issuer }) => issuer === request.authorizationServer);
    const answer = this.#vci.parseAndVerifyAuthorizationResponseRedirectUrl({ url, authorizationServerMetadata: server as never });
    if (answer.code === undefined) throw new Error(`no code: ${answer.error}`);
    const token = await this.#vci.retrieveAuthorizationCodeAccessTokenFromOffer({
      credentialOffer,
      issuerMetadata,
      authorizationCode: answer.code,
      redirectUri: this.#redirectUri,
      ...(request.pkce === undefined ? {} : { pkceCodeVerifier: request.pkce.codeVerifier }),
      additionalRequestPayload: { client_id: this.#clientId },
      dpop: { signer: dpopSigner, ...request.dpop },
    });
    return this.#receive(credentialOffer, issuerMetadata, token, dpopSigner, this.#clientId, options.batch);
  }

  /** Collects anew what the last offer brought, by its refresh token (RFC 6749 section 6). */
  async renew(): Promise<readonly StoredCredential[]> {
    if (this.renewable === undefined) throw new Error('the issuer gave no refresh token');
    const { credentialOffer, issuerMetadata, dpopSigner, refreshToken, server } = this.renewable;
    const metadata = issuerMetadata.authorizationServers.find(({ issuer }) => issuer === server);
    const token = await this.#oauth.retrieveRefreshTokenAccessToken({
      authorizationServerMetadata: metadata as never,
      refreshToken,
      additionalRequestPayload: { client_id: this.#clientId },
      dpop: { signer: dpopSigner },
    });
    return this.#receive(credentialOffer, issuerMetadata, token as unknown as Token, dpopSigner);
  }

  /** Redirect URI; no server listens there. */
  get #redirectUri(): string {
    return `${this.#clientId}/callback`;
  }

  async #receive(
    credentialOffer: Offer,
    issuerMetadata: IssuerMetadata,
    token: Token,
    dpopSigner: JwtSigner & { method: 'jwk' },
    clientId?: string,
    batch = 1,
  ): Promise<readonly StoredCredential[]> {
    const { refresh_token: refreshToken } = token.accessTokenResponse;
    const server = token.authorizationServer ?? this.renewable?.server ?? '';
    if (refreshToken !== undefined) this.renewable = { credentialOffer, issuerMetadata, dpopSigner, refreshToken, server };
    const received: StoredCredential[] = [];
    for (const credentialConfigurationId of credentialOffer.credential_configuration_ids) {
      const holders = await Promise.all(Array.from({ length: batch }, () => this.#newKey()));
      const { c_nonce: nonce } = await this.#vci.requestNonce({ issuerMetadata });
      const proofs: string[] = [];
      const keys = holders.map(({ publicJwk }) => publicJwk);
      const attested = this.#unit?.keyAttestation(keys, nonce);
      // One proof covers all keys of its key attestation (OpenID4VCI 1.0 appendix F.1).
      for (const publicJwk of attested === undefined ? keys : keys.slice(0, 1)) {
        const { jwt } = await this.#vci.createCredentialRequestJwtProof({
          issuerMetadata,
          credentialConfigurationId,
          nonce,
          signer: { method: 'jwk', alg: 'ES256', publicJwk },
          ...(clientId === undefined ? {} : { clientId }),
          ...(attested !== undefined && { keyAttestationJwt: attested }),
        });
        proofs.push(jwt);
      }
      const { credentialResponse } = await this.#vci.retrieveCredentials({
        issuerMetadata,
        credentialConfigurationId,
        accessToken: token.accessTokenResponse.access_token,
        proofs: { jwt: proofs as [string, ...string[]] },
        dpop: { signer: dpopSigner, ...token.dpop },
      });
      const { transaction_id: transactionId } = credentialResponse;
      if (transactionId !== undefined) {
        const accessToken = token.accessTokenResponse.access_token;
        const dpop = { signer: dpopSigner, ...token.dpop };
        const deferredRequest = { issuerMetadata, accessToken, transactionId, dpop };
        this.promised.push({ configurationId: credentialConfigurationId, transactionId, holders, asking: deferredRequest });
      }
      received.push(...(await toStoredCredentials(credentialConfigurationId, credentialResponse.credentials, holders)));
      const { notification_id: notificationId } = credentialResponse;
      if (notificationId !== undefined) {
        await this.#vci.sendNotification({
          issuerMetadata,
          accessToken: token.accessTokenResponse.access_token,
          notification: { notificationId, event: 'credential_accepted' },
          dpop: { signer: dpopSigner, ...token.dpop },
        });
      }
    }
    this.credentials.push(...received);
    return received;
  }

  /**
   * Requests a deferred credential once (OpenID4VCI 1.0 section 9).
   * @returns the received credentials; empty while it is not ready.
   */
  async fetchPromised(): Promise<readonly StoredCredential[]> {
    const received: StoredCredential[] = [];
    for (const { configurationId, holders, asking } of this.promised) {
      const { deferredCredentialResponse } = await this.#vci.retrieveDeferredCredentials(asking);
      received.push(...(await toStoredCredentials(configurationId, deferredCredentialResponse.credentials, holders)));
    }
    this.credentials.push(...received);
    return received;
  }

  /** Fetches and verifies a signed presentation request. */
  async readRequest(uri: string): Promise<PresentationRequest> {
    const parsed = this.#vp.parseOpenid4vpAuthorizationRequest({ authorizationRequest: uri });
    const resolved = await this.#vp.resolveOpenId4vpAuthorizationRequest({ authorizationRequestPayload: parsed.params });
    const { client_id: clientId } = resolved.authorizationRequestPayload as { client_id?: string };
    return toPresentationRequest(resolved.authorizationRequestPayload, String(clientId), resolved.jar?.signer);
  }

  /** Answers every query with the given credential, disclosing exactly the requested claims. */
  async present(
    request: PresentationRequest,
    credential: StoredCredential,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const { payload, asked } = request;
    const nonce = String(payload['nonce']);
    return this.answer(request, await presentations(asked, credential, nonce, request.clientId));
  }

  /** Answers with prepared presentations, by the id of their query. */
  async answer(
    { payload }: PresentationRequest,
    vpToken: Readonly<Record<string, readonly string[]>>,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const authorizationRequestPayload = payload as Parameters<
      Openid4vpClient['createOpenid4vpAuthorizationResponse']
    >[0]['authorizationRequestPayload'];
    const encrypted = payload['response_mode'] === 'direct_post.jwt';
    const created = await this.#vp.createOpenid4vpAuthorizationResponse({
      authorizationRequestPayload,
      authorizationResponsePayload: { vp_token: vpToken as never },
      ...(encrypted ? { jarm: encryption() } : {}),
    });
    const { response } = await this.#vp.submitOpenid4vpAuthorizationResponse({
      authorizationRequestPayload: authorizationRequestPayload as never,
      authorizationResponsePayload: created.authorizationResponsePayload,
      ...(created.jarm === undefined ? {} : { jarm: created.jarm }),
    });
    const body = (await (response as unknown as Response).json()) as Record<string, unknown>;
    return { status: response.status, body };
  }

  /**
   * Parses a request of a page by the Digital Credentials API (OpenID4VP 1.0 appendix A). The response is bound to the
   * page's origin, whoever signed the request (appendix A.4).
   */
  async readPageRequest(data: Readonly<Record<string, unknown>>, origin: string): Promise<PresentationRequest> {
    const resolved = await this.#vp.resolveOpenId4vpAuthorizationRequest({ authorizationRequestPayload: data as never, origin });
    return toPresentationRequest(resolved.authorizationRequestPayload, `origin:${origin}`, resolved.jar?.signer);
  }

  /** @returns what the page hands to the verifier. */
  async answerPage(
    { payload, asked, clientId }: PresentationRequest,
    credential: StoredCredential,
    origin: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    const vpToken = await presentations(asked, credential, String(payload['nonce']), clientId);
    const encrypted = payload['response_mode'] === 'dc_api.jwt';
    const { authorizationResponsePayload, jarm } = await this.#vp.createOpenid4vpAuthorizationResponse({
      authorizationRequestPayload: payload as never,
      authorizationResponsePayload: { vp_token: vpToken as never },
      origin,
      ...(encrypted ? { jarm: encryption() } : {}),
    });
    return jarm === undefined ? authorizationResponsePayload : { response: jarm.responseJwt };
  }

  async #newKey(): Promise<Key> {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { kty, crv, x, y } = await exportJWK(publicKey);
    const key = { privateKey, publicJwk: { kty, crv, x, y } as Jwk };
    this.#keys.set(String(x), key);
    return key;
  }

  #signing(): Pick<CallbackContext, 'signJwt'> {
    return {
      signJwt: async (signer, { header, payload }) => {
        const publicJwk = signer.method === 'jwk' ? signer.publicJwk : undefined;
        const key = this.#keys.get(String(publicJwk?.x));
        if (publicJwk === undefined || key === undefined) throw new Error('the wallet has no such key');
        const jwt = await new SignJWT(payload as never).setProtectedHeader({ ...header, alg: 'ES256' } as never).sign(key.privateKey);
        return { jwt, signerJwk: publicJwk };
      },
    };
  }

  #callbacks(fetch: typeof globalThis.fetch): CallbackContext {
    const { signJwt } = this.#signing();
    const instance = this.#newKey();
    const unit = this.#unit;
    return {
      fetch: fetch as never,
      signJwt,
      hash: (data, alg) => createHash(alg.replace('-', '').toLowerCase()).update(data).digest(),
      generateRandom: (length) => randomBytes(length),
      clientAuthentication:
        unit === undefined
          ? clientAuthenticationAnonymous()
          : makeAttestedWallet(unit, async () => (await instance).publicJwk, { signJwt }),
      verifyJwt: verifySigner,
      encryptJwe: async (encryptor, data) => {
        const { alg, enc, publicJwk, kid, apu, apv } = encryptor;
        const keyId = kid ?? publicJwk.kid;
        const jwe = new CompactEncrypt(new TextEncoder().encode(data)).setProtectedHeader({
          alg,
          enc,
          ...(keyId === undefined ? {} : { kid: keyId }),
        });
        jwe.setKeyManagementParameters({
          ...(apu === undefined ? {} : { apu: Buffer.from(apu, 'base64url') }),
          ...(apv === undefined ? {} : { apv: Buffer.from(apv, 'base64url') }),
        });
        return { encryptionJwk: publicJwk, jwe: await jwe.encrypt(await importJWK(publicJwk as never, alg)) };
      },
      decryptJwe: () => ({ decrypted: false as const }),
      getX509CertificateMetadata: (certificate) => {
        const { subjectAltName = '' } = new X509Certificate(Buffer.from(certificate, 'base64'));
        const names = subjectAltName.split(', ');
        const withoutPrefix = (prefix: string) => names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
        return { sanDnsNames: withoutPrefix('DNS:'), sanUriNames: withoutPrefix('URI:') };
      },
    };
  }
}

const CLIENT_ID = 'https://wallet.example.org';

/** Encryption of responses. */
const encryption = () => ({
  encryption: { nonce: randomBytes(12).toString('base64url') },
  serverMetadata: {
    authorization_signing_alg_values_supported: [],
    authorization_encryption_alg_values_supported: ['ECDH-ES'],
    authorization_encryption_enc_values_supported: ['A256GCM', 'A128GCM'],
  },
});

/** The scopes by which the metadata names these configurations. */
function findScopes({ credentialIssuer }: Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>, ids: readonly string[]): string {
  const supported = credentialIssuer.credential_configurations_supported;
  return ids.map((id) => String(supported[id]?.['scope'])).join(' ');
}

/**
 * The releases that are tested with (0.4.6 of @openid4vc) take a `notification_id` for a fault where deferred credentials
 * come, which is where OpenID4VCI 1.0 section 9.2 has it. Behind this they do not see it.
 */
export const unnotified: typeof globalThis.fetch = async (input, init) => {
  const answer = await globalThis.fetch(input, init);
  const address = input instanceof Request ? input.url : String(input);
  if (answer.status !== 200 || !address.endsWith('/deferred_credential')) return answer;
  const { notification_id: _unseen, ...body } = (await answer.json()) as Record<string, unknown>;
  return new Response(JSON.stringify(body), { status: 200, headers: answer.headers });
};
