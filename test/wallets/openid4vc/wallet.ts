import { createHash, generateKeyPairSync, type KeyObject, randomBytes, X509Certificate } from 'node:crypto';
import {
  type CallbackContext,
  clientAuthenticationAnonymous,
  type Jwk,
  type JwtSigner,
  setGlobalConfig,
} from '@openid4vc/oauth2';
import { Openid4vciClient } from '@openid4vc/openid4vci';
import { Openid4vpClient } from '@openid4vc/openid4vp';
import { CompactEncrypt, exportJWK, importJWK, importX509, jwtVerify, SignJWT } from 'jose';

type Key = { readonly privateKey: KeyObject; readonly publicJwk: Jwk };

export type StoredCredential = {
  readonly configurationId: string;
  readonly text: string;
  readonly holder: Key;
};

/** What the issuer promised for later, and what it takes to fetch it. */
type Promised = {
  readonly configurationId: string;
  readonly transactionId: string;
  readonly holders: readonly Key[];
  readonly asking: Parameters<Openid4vciClient['retrieveDeferredCredentials']>[0];
};

export type PresentationRequest = {
  readonly clientId: string;
  readonly payload: Readonly<Record<string, unknown>>;
  /** Paths of the claims that the verifier asks for, dotted, per query. */
  readonly asked: Readonly<Record<string, readonly string[]>>;
};

/**
 * A wallet made of other people's code: the @openid4vc packages speak the protocols, jose signs and encrypts. It
 * shares nothing with the service, so what it accepts is evidence.
 */
export class Openid4vcWallet {
  readonly credentials: StoredCredential[] = [];
  readonly promised: Promised[] = [];
  readonly #keys = new Map<string, Key>();
  readonly #vci: Openid4vciClient;
  readonly #vp: Openid4vpClient;

  constructor(fetch: typeof globalThis.fetch = globalThis.fetch) {
    // Plain http is only for loopback addresses, as in a demonstration.
    setGlobalConfig({ allowInsecureUrls: true });
    const callbacks = this.#callbacks(fetch);
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
  ): Promise<readonly StoredCredential[]> {
    const credentialOffer = await this.#vci.resolveCredentialOffer(uri);
    const issuerMetadata = await this.#vci.resolveIssuerMetadata(credentialOffer.credential_issuer);
    const dpopKey = await this.#newKey();
    const dpopSigner = { method: 'jwk' as const, alg: 'ES256', publicJwk: dpopKey.publicJwk };
    const request = await this.#vci.createAuthorizationRequestUrlFromOffer({
      credentialOffer,
      issuerMetadata,
      clientId: CLIENT_ID,
      redirectUri: REDIRECT_URI,
      scope: scopesOf(issuerMetadata, credentialOffer.credential_configuration_ids),
      dpop: { signer: dpopSigner },
    });
    const url = await browse(request.authorizationRequestUrl);
    const server = issuerMetadata.authorizationServers.find(
      ({ issuer }) => issuer === request.authorizationServer,
    );
    const answer = this.#vci.parseAndVerifyAuthorizationResponseRedirectUrl({
      url,
      authorizationServerMetadata: server as never,
    });
    if (answer.code === undefined) throw new Error(`no code: ${answer.error}`);
    const token = await this.#vci.retrieveAuthorizationCodeAccessTokenFromOffer({
      credentialOffer,
      issuerMetadata,
      authorizationCode: answer.code,
      redirectUri: REDIRECT_URI,
      ...(request.pkce === undefined ? {} : { pkceCodeVerifier: request.pkce.codeVerifier }),
      additionalRequestPayload: { client_id: CLIENT_ID },
      dpop: { signer: dpopSigner, ...request.dpop },
    });
    return this.#receive(credentialOffer, issuerMetadata, token, dpopSigner, CLIENT_ID);
  }

  async #receive(
    credentialOffer: Awaited<ReturnType<Openid4vciClient['resolveCredentialOffer']>>,
    issuerMetadata: Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>,
    token: Awaited<ReturnType<Openid4vciClient['retrievePreAuthorizedCodeAccessTokenFromOffer']>>,
    dpopSigner: JwtSigner & { method: 'jwk' },
    clientId?: string,
    batch = 1,
  ): Promise<readonly StoredCredential[]> {
    const received: StoredCredential[] = [];
    for (const credentialConfigurationId of credentialOffer.credential_configuration_ids) {
      const holders = await Promise.all(Array.from({ length: batch }, () => this.#newKey()));
      const { c_nonce: nonce } = await this.#vci.requestNonce({ issuerMetadata });
      const proofs: string[] = [];
      for (const { publicJwk } of holders) {
        const { jwt } = await this.#vci.createCredentialRequestJwtProof({
          issuerMetadata,
          credentialConfigurationId,
          nonce,
          signer: { method: 'jwk', alg: 'ES256', publicJwk },
          ...(clientId === undefined ? {} : { clientId }),
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
        const asking = { issuerMetadata, accessToken, transactionId, dpop };
        this.promised.push({ configurationId: credentialConfigurationId, transactionId, holders, asking });
      }
      received.push(
        ...(await credentialsOf(credentialConfigurationId, credentialResponse.credentials, holders)),
      );
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

  /** Asks once for what was promised (OpenID4VCI 1.0 section 9). @returns what came; nothing while it is not ready. */
  async fetchPromised(): Promise<readonly StoredCredential[]> {
    const received: StoredCredential[] = [];
    for (const { configurationId, holders, asking } of this.promised) {
      const { deferredCredentialResponse } = await this.#vci.retrieveDeferredCredentials(asking);
      received.push(
        ...(await credentialsOf(configurationId, deferredCredentialResponse.credentials, holders)),
      );
    }
    this.credentials.push(...received);
    return received;
  }

  /** Fetches and verifies a signed presentation request. */
  async readRequest(uri: string): Promise<PresentationRequest> {
    const parsed = this.#vp.parseOpenid4vpAuthorizationRequest({ authorizationRequest: uri });
    const resolved = await this.#vp.resolveOpenId4vpAuthorizationRequest({
      authorizationRequestPayload: parsed.params,
    });
    const payload = resolved.authorizationRequestPayload as Record<string, unknown>;
    const query = payload['dcql_query'] as {
      credentials: { id: string; claims?: { path: (string | number | null)[] }[] }[];
    };
    return {
      clientId: String(payload['client_id']),
      payload,
      asked: Object.fromEntries(
        query.credentials.map(({ id, claims }) => [id, (claims ?? []).map(({ path }) => path.join('.'))]),
      ),
    };
  }

  /** Answers every query with the given credential, disclosing what was asked for and nothing else. */
  async present(
    request: PresentationRequest,
    credential: StoredCredential,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
    const { payload, asked } = request;
    const vpToken: Record<string, string[]> = {};
    for (const [id, claims] of Object.entries(asked)) {
      const names = new Set(claims.flatMap((claim) => claim.split('.')));
      vpToken[id] = [await presentation(credential, names, String(payload['nonce']), request.clientId)];
    }
    return this.answer(request, vpToken);
  }

  /** Answers with presentations that somebody else made, by the id of their query. */
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
      ...(encrypted
        ? {
            jarm: {
              encryption: { nonce: randomBytes(12).toString('base64url') },
              serverMetadata: {
                authorization_signing_alg_values_supported: [],
                authorization_encryption_alg_values_supported: ['ECDH-ES'],
                authorization_encryption_enc_values_supported: ['A256GCM', 'A128GCM'],
              },
            },
          }
        : {}),
    });
    const { response } = await this.#vp.submitOpenid4vpAuthorizationResponse({
      authorizationRequestPayload: authorizationRequestPayload as never,
      authorizationResponsePayload: created.authorizationResponsePayload,
      ...(created.jarm === undefined ? {} : { jarm: created.jarm }),
    });
    const body = (await (response as unknown as Response).json()) as Record<string, unknown>;
    return { status: response.status, body };
  }

  async #newKey(): Promise<Key> {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const { kty, crv, x, y } = await exportJWK(publicKey);
    const key = { privateKey, publicJwk: { kty, crv, x, y } as Jwk };
    this.#keys.set(String(x), key);
    return key;
  }

  #callbacks(fetch: typeof globalThis.fetch): CallbackContext {
    return {
      fetch: fetch as never,
      hash: (data, alg) => createHash(alg.replace('-', '').toLowerCase()).update(data).digest(),
      generateRandom: (length) => randomBytes(length),
      clientAuthentication: clientAuthenticationAnonymous(),
      signJwt: async (signer, { header, payload }) => {
        const publicJwk = signer.method === 'jwk' ? signer.publicJwk : undefined;
        const key = this.#keys.get(String(publicJwk?.x));
        if (publicJwk === undefined || key === undefined) throw new Error('the wallet has no such key');
        const jwt = await new SignJWT(payload as never)
          .setProtectedHeader({ ...header, alg: 'ES256' } as never)
          .sign(key.privateKey);
        return { jwt, signerJwk: publicJwk };
      },
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
        const of = (prefix: string) =>
          names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
        return { sanDnsNames: of('DNS:'), sanUriNames: of('URI:') };
      },
    };
  }
}

const CLIENT_ID = 'https://wallet.example.org';
const REDIRECT_URI = 'https://wallet.example.org/callback';

/** The scopes by which the metadata names these configurations. */
function scopesOf(
  { credentialIssuer }: Awaited<ReturnType<Openid4vciClient['resolveIssuerMetadata']>>,
  ids: readonly string[],
): string {
  const supported = credentialIssuer.credential_configurations_supported;
  return ids.map((id) => String(supported[id]?.['scope'])).join(' ');
}

/** Credentials of one answer, each with the key of its place. */
async function credentialsOf(
  configurationId: string,
  entries: readonly unknown[] = [],
  holders: readonly Key[],
): Promise<readonly StoredCredential[]> {
  const received: StoredCredential[] = [];
  for (const [index, entry] of entries.entries()) {
    const text = String((entry as { credential: unknown }).credential);
    if (text.includes('~')) await verifyIssuerSignature(text);
    const holder = holders[index];
    if (holder === undefined) throw new Error('more credentials than keys');
    received.push({ configurationId, text, holder });
  }
  return received;
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

async function verifySigner(signer: JwtSigner, { compact }: { compact: string }) {
  const certificate = signer.method === 'x5c' ? signer.x5c[0] : undefined;
  if (certificate === undefined) return { verified: false as const };
  const key = await importX509(pem(certificate), signer.alg);
  try {
    await jwtVerify(compact, key, { typ: 'oauth-authz-req+jwt' });
    return { verified: true as const, signerJwk: (await exportJWK(key)) as Jwk };
  } catch {
    return { verified: false as const };
  }
}

async function verifyIssuerSignature(credential: string): Promise<void> {
  const [jwt = ''] = credential.split('~');
  const { x5c } = JSON.parse(Buffer.from(jwt.split('.')[0] ?? '', 'base64url').toString()) as {
    x5c: string[];
  };
  await jwtVerify(jwt, await importX509(pem(x5c[0] ?? ''), 'ES256'), { typ: 'dc+sd-jwt' });
}

function pem(certificate: string): string {
  return `-----BEGIN CERTIFICATE-----\n${certificate}\n-----END CERTIFICATE-----`;
}

/** Keeps the disclosures of the wanted names and binds them to the request (RFC 9901 section 4.3). */
async function presentation(
  credential: StoredCredential,
  names: ReadonlySet<string>,
  nonce: string,
  audience: string,
) {
  const [jwt = '', ...disclosures] = credential.text.split('~').slice(0, -1);
  const kept = disclosures.filter((disclosure) => {
    const parts = JSON.parse(Buffer.from(disclosure, 'base64url').toString()) as unknown[];
    return parts.length === 2 || names.has(String(parts[1]));
  });
  const bound = [jwt, ...kept, ''].join('~');
  const keyBinding = await new SignJWT({
    nonce,
    sd_hash: createHash('sha256').update(bound).digest('base64url'),
  })
    .setProtectedHeader({ alg: 'ES256', typ: 'kb+jwt' })
    .setAudience(audience)
    .setIssuedAt()
    .sign(credential.holder.privateKey);
  return bound + keyBinding;
}

/** What a credential says about its holder, for showing it. */
export function readableClaims(text: string): Record<string, unknown> {
  const [, ...disclosures] = text.split('~').slice(0, -1);
  const claims: Record<string, unknown> = {};
  for (const disclosure of disclosures) {
    const parts = JSON.parse(Buffer.from(disclosure, 'base64url').toString()) as unknown[];
    if (parts.length === 3) claims[String(parts[1])] = parts[2];
  }
  return claims;
}
