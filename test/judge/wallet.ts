import type { Flow } from './flows.ts';
import type { Format, Profile, Tool } from './verdict.ts';

export type CredentialOfferInput = {
  /** A link. */
  readonly offer: string;
  readonly grant: 'pre_authorized_code' | 'authorization_code';
  readonly txCode?: string;
  /** Number of requested copies. */
  readonly batch?: number;
};

/** A request by the Digital Credentials API, as `navigator.credentials.get` takes it. */
export type PageRequest = { readonly requests: readonly { readonly protocol: string; readonly data: Record<string, unknown> }[] };

/** The response of a verifier to a presentation. */
export type Answer = { readonly isAccepted: boolean; readonly redirectUri?: string | undefined };

/** An independent wallet, controlled by the tool. */
export interface WalletUnderTest {
  readonly tool: Tool;
  /** Properties of the issuance configuration by which a tenant trusts its provider. */
  trust(): Promise<Record<string, unknown>>;
  /** The same by a list that the tool publishes itself, where it does. */
  ownTrust?(): Promise<Record<string, unknown>>;
  /** Why the wallet does not support this flow; undefined if it does. */
  lacks(flow: Flow, format: Format, profile: Profile): string | undefined;
  /** Profiles under which it gets no credentials; it presents credentials of a tenant without a profile there. */
  readonly issuedElsewhere?: readonly Profile[];
  /** An empty wallet. */
  begin(world: WalletWorld): Promise<WalletRun>;
  close(): Promise<void>;
}

export type WalletWorld = {
  readonly profile: Profile;
  /** Profile of the issuing tenant, which may be another one. */
  readonly issuerProfile: Profile;
  readonly flow: Flow;
  readonly format: Format;
  /** Of issuers and verifiers; DER in standard base64. */
  readonly anchors: readonly string[];
};

/** Each step returns the number of received credentials, and throws when the wallet rejects. */
export interface WalletRun {
  accept(order: CredentialOfferInput): Promise<number>;
  /** Fetches the deferred credential. */
  collect(): Promise<number>;
  /** Collects anew by the refresh token. */
  renew(): Promise<number>;
  present(request: string): Promise<Answer>;
  /** Checks what it holds by a trust list (`application/jwt`), where it can. */
  validate?(trustList: string): Promise<void>;
  /** @returns what the page hands to the verifier. */
  presentToPage(request: PageRequest, origin: string): Promise<Readonly<Record<string, unknown>>>;
}
