import type { Flow } from './flows.ts';
import type { Format, Profile, Tool } from './verdict.ts';

export type Order = {
  /** A link. */
  readonly offer: string;
  readonly grant: 'pre_authorized_code' | 'authorization_code';
  readonly txCode?: string;
  /** Copies that are asked for. */
  readonly batch?: number;
};

/** A request by the Digital Credentials API, as `navigator.credentials.get` takes it. */
export type PageRequest = { readonly requests: readonly { readonly protocol: string; readonly data: Record<string, unknown> }[] };

/** What a verifier answered to a presentation. */
export type Answer = { readonly isAccepted: boolean; readonly redirectUri?: string | undefined };

/** A wallet of other people, driven from outside. */
export interface JudgedWallet {
  readonly tool: Tool;
  /** Members of the issuance configuration by which a tenant trusts its provider. */
  trust(): Promise<Record<string, unknown>>;
  /** The same by a list that the tool publishes itself, where it does. */
  ownTrust?(): Promise<Record<string, unknown>>;
  /** Why it cannot be asked for this; undefined where it can. */
  lacks(flow: Flow, format: Format, profile: Profile): string | undefined;
  /** Profiles under which nobody issues to it; what it presents there comes from a tenant without a profile. */
  readonly issuedElsewhere?: readonly Profile[];
  /** An empty wallet. */
  begin(world: WalletWorld): Promise<WalletRun>;
  close(): Promise<void>;
}

export type WalletWorld = {
  readonly profile: Profile;
  /** Of the tenant that issues, which may be another one. */
  readonly issuerProfile: Profile;
  readonly flow: Flow;
  readonly format: Format;
  /** Of issuers and verifiers; DER in standard base64. */
  readonly anchors: readonly string[];
};

/** What each step answers is how many credentials came. Whatever the wallet refuses is thrown. */
export interface WalletRun {
  accept(order: Order): Promise<number>;
  /** Asks for what was promised. */
  collect(): Promise<number>;
  /** Collects anew by the refresh token. */
  renew(): Promise<number>;
  present(request: string): Promise<Answer>;
  /** Checks what it holds by a trust list (`application/jwt`), where it can. */
  validate?(trustList: string): Promise<void>;
  /** @returns what the page hands to the verifier. */
  presentToPage(request: PageRequest, origin: string): Promise<Readonly<Record<string, unknown>>>;
}
