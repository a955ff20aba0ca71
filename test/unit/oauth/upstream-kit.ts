import type { UpstreamResponse } from '../../../application/oauth/finish-upstream-login.ts';
import type { Authorization } from '../../../domain/oauth/authorization.ts';
import type { SessionId } from '../../../domain/shared/ids.ts';
import { UPSTREAM } from '../../support/fake-authorization-servers.ts';
import { AUTHORIZATION_REQUEST } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { WalletWorld } from '../wallet-kit.ts';

export type Login = {
  /** The authorization. */
  readonly id: string;
  readonly session: SessionId;
  /** Where the browser is sent to log in. */
  readonly location: URL;
  readonly browserSecrets: ReadonlyMap<string, string>;
};

/** A tenant whose users log in at a provider, a wallet that proves nothing, and the browser between them. */
export class LoginWorld {
  readonly world: WalletWorld;
  readonly wallet: Wallet;

  private constructor(world: WalletWorld) {
    this.world = world;
    this.wallet = new Wallet(world);
  }

  static async open(): Promise<LoginWorld> {
    const logins = new LoginWorld(await WalletWorld.open());
    await logins.configure();
    return logins;
  }

  async configure(changes: object = {}, upstream: object = {}): Promise<void> {
    const provider = { issuer: UPSTREAM, clientId: 'vidimus', clientSecret: 'secret', ...upstream };
    await this.world.issues({ chainedAs: { upstream: provider, ...changes } });
  }

  get server(): string {
    return `${this.wallet.issuer}/chained-as`;
  }

  /** Pushes a request for an offer. */
  async push(): Promise<{ readonly requestUri: string; readonly session: SessionId }> {
    const { session } = await anOffer(this.world, { flow: 'authorization_code' });
    const form = { issuer_state: session.publicId };
    return { requestUri: await this.wallet.push(form, { server: 'chained' }), session: session.id };
  }

  visit(requestUri: string) {
    const clientId = AUTHORIZATION_REQUEST.client_id;
    return this.world.startUpstreamLogin.execute(ACME, { clientId, requestUri });
  }

  /** A browser that was sent to the provider. */
  async start(): Promise<Login> {
    const { requestUri, session } = await this.push();
    const { location, keep } = await this.visit(requestUri);
    if (keep === undefined) throw new Error('nobody logs in');
    const { authorizationId: id, browserSecret } = keep;
    return { id, session, location: new URL(location), browserSecrets: new Map([[id, browserSecret]]) };
  }

  /** The browser comes back with a code; a member that is undefined is left out. */
  finish(
    { location, browserSecrets }: Login,
    changes: { readonly [name in keyof UpstreamResponse]?: UpstreamResponse[name] } = {},
  ) {
    const state = location.searchParams.get('state') ?? undefined;
    const response = { code: 'the code', state, error: undefined, iss: UPSTREAM, browserSecrets, ...changes };
    return this.world.finishUpstreamLogin.execute(ACME, response);
  }

  async stored(id: string): Promise<Authorization | undefined> {
    return (await this.world.store.read(ACME).authorization(id))?.authorization;
  }

  async end({ session: id }: Pick<Login, 'session'>): Promise<void> {
    const failed = { id, anytime: ['active', 'fetched'], to: 'failed' } as const;
    await this.world.store.commit(ACME, { session: failed }, this.world.clock.now());
  }

  /** What the wallet learns, without the words for humans. */
  told(location: string): Record<string, string> {
    const { keep: _, error_description: __, ...rest } = Object.fromEntries(new URL(location).searchParams);
    return rest;
  }

  /** What a wallet is told that gets no code. */
  refusal(error: string): Record<string, string> {
    return { error, state: AUTHORIZATION_REQUEST.state, iss: this.server };
  }
}
