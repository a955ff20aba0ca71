import type { WalletRequest } from '../../application/issuance/issue-credential.ts';
import type { OAuthRequest } from '../../application/oauth/oauth-callers.ts';
import type { TokenAnswer } from '../../application/oauth/token-issuer.ts';
import { OfferRequest } from '../../domain/issuance/offer.ts';
import type { AuthorizationServer } from '../../domain/oauth/grant.ts';
import {
  AUTHORIZATION_CODE_GRANT,
  PRE_AUTHORIZED_CODE_GRANT,
  REFRESH_TOKEN_GRANT,
} from '../../domain/oauth/token-request.ts';
import type { IssuanceRequest, Session } from '../../domain/sessions/session.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import {
  AUTHORIZATION_REQUEST,
  type Bend,
  CODE_VERIFIER,
  dpopProof,
  type HolderKey,
  keyProof,
  newKey,
} from '../support/raw-wallet.ts';
import { rememberedCaller } from '../support/remembered-caller.ts';
import { ACME, PUBLIC_URL } from './verification-flow/kit.ts';
import type { WalletWorld } from './wallet-kit.ts';

export type Offered = {
  readonly session: Session;
  /** Of a pre-authorized offer. */
  readonly code: string;
};

/** Offers credentials, `card` unless stated, by a pre-authorized code unless stated. */
export async function anOffer(world: WalletWorld, changes: object = {}, tenantId = ACME): Promise<Offered> {
  const body = OfferRequest.parse({
    response_type: 'uri',
    flow: 'pre_authorized_code',
    credentialConfigurationIds: ['card'],
    ...changes,
  });
  const caller = rememberedCaller(await world.caller(tenantId));
  const { session: id } = await world.createOffer.execute(caller, body);
  const session = await world.session(id, tenantId);
  const { offer } = session.request as IssuanceRequest;
  const grants = offer['grants'] as Record<string, Record<string, string>>;
  return { session, code: grants[PRE_AUTHORIZED_CODE_GRANT]?.['pre-authorized_code'] ?? '' };
}

/** What a wallet sends that is right in every respect which a test does not change. */
export class Wallet {
  readonly world: WalletWorld;
  readonly tenantId: TenantId;
  readonly key: HolderKey = newKey();

  constructor(world: WalletWorld, tenantId = ACME) {
    this.world = world;
    this.tenantId = tenantId;
  }

  get issuer(): string {
    return `${PUBLIC_URL}/${this.tenantId}`;
  }

  #timed({ header = {}, payload = {} }: Bend): Bend {
    return { header, payload: { iat: this.world.seconds, ...payload } };
  }

  /** @param path below the issuer. */
  dpop(path: string, options: { token?: string; method?: string; key?: HolderKey } & Bend = {}): string {
    const { key = this.key, ...rest } = options;
    return dpopProof(key, `${this.issuer}/${path}`, { ...rest, ...this.#timed(options) });
  }

  keyProof(nonce: string, bend: Bend = {}, key = newKey()): string {
    return keyProof(key, this.issuer, nonce, this.#timed(bend));
  }

  /** A request to an authorization server, with a proof of the wallet's key. */
  oauth(path: string, form: Record<string, string> = {}, more: Partial<OAuthRequest> = {}): OAuthRequest {
    return { form, attestation: [], attestationPop: [], dpop: [this.dpop(path)], ...more };
  }

  redeem(
    code: string,
    more: { readonly txCode?: string; readonly wanted?: string[]; readonly request?: OAuthRequest } = {},
  ): Promise<TokenAnswer> {
    const { txCode, wanted, request = this.oauth('token') } = more;
    const grantType = PRE_AUTHORIZED_CODE_GRANT;
    return this.world.redeemGrant.execute(this.tenantId, request, { grantType, code, txCode, wanted });
  }

  redeemCode(
    code: string,
    more: {
      readonly server?: AuthorizationServer;
      readonly changes?: { redirectUri?: string; codeVerifier?: string; wanted?: string[] };
      readonly request?: OAuthRequest;
    } = {},
  ): Promise<TokenAnswer> {
    const { server = 'built-in', changes = {} } = more;
    const path = server === 'chained' ? 'chained-as/token' : 'token';
    const { client_id, redirect_uri: redirectUri } = AUTHORIZATION_REQUEST;
    const request = more.request ?? this.oauth(path, { client_id });
    return this.world.redeemCode.execute(this.tenantId, server, request, {
      grantType: AUTHORIZATION_CODE_GRANT,
      code,
      redirectUri,
      codeVerifier: CODE_VERIFIER,
      wanted: undefined,
      ...changes,
    });
  }

  refresh(
    refreshToken: string | undefined,
    more: { readonly scope?: string; readonly wanted?: string[]; readonly request?: OAuthRequest } = {},
  ): Promise<TokenAnswer> {
    const { scope, wanted, request = this.oauth('token') } = more;
    const grantType = REFRESH_TOKEN_GRANT;
    const refresh = { grantType, refreshToken: refreshToken ?? '', scope, wanted } as const;
    return this.world.refreshAccess.execute(this.tenantId, 'built-in', request, refresh);
  }

  async token(offered: Offered, txCode?: string): Promise<string> {
    const { body } = await this.redeem(offered.code, txCode === undefined ? {} : { txCode });
    return body.access_token;
  }

  async nonce(): Promise<string> {
    return (await this.world.createNonce.execute(this.tenantId)).cNonce;
  }

  /** A request to a protected endpoint. */
  asking(token: string, path: string, body: unknown, more: Partial<WalletRequest> = {}): WalletRequest {
    return {
      wallet: { authorization: `DPoP ${token}`, dpop: [this.dpop(path, { token })] },
      contentType: 'application/json',
      body: Buffer.from(JSON.stringify(body)),
      ...more,
    };
  }

  /** A request for one credential, with a fresh proof of a fresh key. */
  async wanting(
    token: string,
    changes: object = {},
    more: Partial<WalletRequest> = {},
  ): Promise<WalletRequest> {
    const jwt = [this.keyProof(await this.nonce())];
    const body = { credential_configuration_id: 'card', proofs: { jwt }, ...changes };
    return this.asking(token, 'credential', body, more);
  }

  async issue(token: string, changes: object = {}): Promise<Issued> {
    const request = await this.wanting(token, changes);
    const { text } = await this.world.issueCredential.execute(this.tenantId, request);
    return JSON.parse(text) as Issued;
  }

  /** Pushes an authorization request; what is undefined is left out. @returns the request URI. */
  async push(
    changes: Readonly<Record<string, string | undefined>> = {},
    more: { readonly server?: AuthorizationServer; readonly request?: Partial<OAuthRequest> } = {},
  ): Promise<string> {
    const { server = 'built-in', request = {} } = more;
    const path = server === 'chained' ? 'chained-as/par' : 'par';
    const all = Object.entries({ ...AUTHORIZATION_REQUEST, scope: 'card', ...changes });
    const form = Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== undefined));
    const asked = this.oauth(path, form, request);
    return (await this.world.pushAuthorization.execute(this.tenantId, server, asked)).body.request_uri;
  }

  /** The user approves. @returns a code of the built-in server. */
  async approve(requestUri: string): Promise<string> {
    const { world, tenantId } = this;
    const browser = { clientId: AUTHORIZATION_REQUEST.client_id, requestUri };
    const shown = await world.showAuthorization.execute(tenantId, browser);
    const decisionToken = 'fields' in shown ? shown.fields['decision_token'] : undefined;
    const decision = { ...browser, decision: 'approve', decisionToken, browserSecrets: new Map() };
    const { location } = await world.decideAuthorization.execute(tenantId, decision);
    return new URL(location).searchParams.get('code') ?? '';
  }
}

export type Issued = {
  readonly credentials: readonly { readonly credential: string }[];
  readonly notification_id: string;
  readonly transaction_id?: string;
};
