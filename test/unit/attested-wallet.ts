import { attestationChallenge } from '../../application/oauth/challenges.ts';
import type { OAuthRequest } from '../../application/oauth/oauth-callers.ts';
import type { RemoteResponse } from '../../application/ports/remote.ts';
import { CLIENT_ID, type HolderKey, newKey } from '../support/raw-wallet.ts';
import { WalletProvider } from '../support/wallet-provider.ts';
import { ACME } from './verification-flow/kit.ts';
import { Wallet } from './wallet.ts';
import type { WalletWorld } from './wallet-kit.ts';

/** A wallet whose provider attests it, and whose trust list and status lists are served. */
export class AttestedWallet extends Wallet {
  readonly provider: WalletProvider;
  readonly instance: HolderKey = newKey();
  /** Members of its attestation besides those that every one has. */
  says: Record<string, unknown> = {};

  private constructor(world: WalletWorld, provider: WalletProvider) {
    super(world);
    this.provider = provider;
  }

  /** @param answers other addresses than those of the provider. */
  static async make(
    world: WalletWorld,
    answers: (url: string) => RemoteResponse | undefined = () => undefined,
  ): Promise<AttestedWallet> {
    const provider = await WalletProvider.make(() => world.seconds);
    world.remote.answer = (url) => {
      const { status, type, body } = provider.answer(new URL(url).pathname);
      return answers(url) ?? { status, contentType: type, body: Buffer.from(body) };
    };
    return new AttestedWallet(world, provider);
  }

  /** The headers of a request to an authorization server of the tenant. */
  attested(server = this.issuer): Pick<OAuthRequest, 'attestation' | 'attestationPop'> {
    const challenge = attestationChallenge(this.world, ACME, server, this.world.clock.now());
    return {
      attestation: [this.provider.attestation(this.instance, { payload: this.says })],
      attestationPop: [this.provider.pop(this.instance, server, { challenge })],
    };
  }

  override oauth(
    path: string,
    form: Record<string, string> = {},
    more: Partial<OAuthRequest> = {},
  ): OAuthRequest {
    const server = path.startsWith('chained-as/') ? `${this.issuer}/chained-as` : this.issuer;
    return super.oauth(path, { client_id: CLIENT_ID, ...form }, { ...this.attested(server), ...more });
  }

  /** How often a status list was asked for. */
  get asked(): number {
    return this.world.remote.calls.filter(({ url }) => url.includes('/status/')).length;
  }
}
