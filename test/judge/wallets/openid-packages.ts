import { readFileSync } from 'node:fs';
import type { Authorities } from '../../demo/authorities.ts';
import { approve } from '../../wallets/openid4vc/browser.ts';
import type { StoredCredential } from '../../wallets/openid4vc/credentials.ts';
import { Openid4vcWallet } from '../../wallets/openid4vc/wallet.ts';
import type { Flow } from '../flows.ts';
import { isStrict } from '../tenant.ts';
import type { Format } from '../verdict.ts';
import type { Answer, CredentialOfferInput, PageRequest, WalletRun, WalletUnderTest, WalletWorld } from '../wallet.ts';

const PRESENTING: readonly Flow[] = ['sameDevice', 'crossDevice', 'plain', 'page', 'unsignedPage', 'revoked'];

/** Features of the packages that the test wallet does not use. */
const LACKING: Readonly<Partial<Record<Flow, string>>> = {
  interactive: 'the packages follow another draft of it',
  encrypted: 'the wallet asks for no encryption of requests',
  severalSigners: 'the packages read requests with one signature',
  validated: 'it reads no trust lists',
};

/** The wallet of the tests that is made of the @openid4vc packages. */
export class OpenidPackages implements WalletUnderTest {
  readonly tool = {
    name: '@openid4vc',
    version: packageVersion('@openid4vc/openid4vci'),
    about: 'the packages oauth2, openid4vci and openid4vp with jose; attestations come from a provider of the tests',
  };
  readonly #authorities: Authorities;

  constructor(authorities: Authorities) {
    this.#authorities = authorities;
  }

  async trust(): Promise<Record<string, unknown>> {
    return this.#authorities.provider.registered([`${this.#authorities.provider.clientId}/callback`]);
  }

  lacks(flow: Flow, format: Format): string | undefined {
    const unsupportedReason = LACKING[flow];
    if (unsupportedReason !== undefined) return unsupportedReason;
    return format === 'mso_mdoc' && PRESENTING.includes(flow) ? 'it knows no mdocs' : undefined;
  }

  async begin({ profile }: WalletWorld): Promise<WalletRun> {
    const unit = isStrict(profile) ? this.#authorities.newUnit().unit : undefined;
    return new Run(new Openid4vcWallet(globalThis.fetch, unit));
  }

  async close(): Promise<void> {}
}

class Run implements WalletRun {
  readonly #wallet: Openid4vcWallet;

  constructor(wallet: Openid4vcWallet) {
    this.#wallet = wallet;
  }

  async accept({ offer, grant, txCode, batch = 1 }: CredentialOfferInput): Promise<number> {
    const received =
      grant === 'authorization_code'
        ? await this.#wallet.acceptByCode(offer, approve, { batch })
        : await this.#wallet.accept(offer, { batch, ...(txCode !== undefined && { txCode }) });
    return received.length;
  }

  async collect(): Promise<number> {
    return (await this.#wallet.fetchPromised()).length;
  }

  async renew(): Promise<number> {
    return (await this.#wallet.renew()).length;
  }

  async present(uri: string): Promise<Answer> {
    const { status, body } = await this.#wallet.present(await this.#wallet.readRequest(uri), this.#last());
    return { isAccepted: status === 200, redirectUri: body['redirect_uri'] as string | undefined };
  }

  async presentToPage({ requests }: PageRequest, origin: string): Promise<Readonly<Record<string, unknown>>> {
    const request = await this.#wallet.readPageRequest(requests[0]?.data ?? {}, origin);
    return this.#wallet.answerPage(request, this.#last(), origin);
  }

  #last(): StoredCredential {
    const credential = this.#wallet.credentials.at(-1);
    if (credential === undefined) throw new Error('the wallet has no credential');
    return credential;
  }
}

function packageVersion(name: string): string {
  const file = new URL(`../../../node_modules/${name}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
