import { expect } from 'chai';
import { Browser, type BrowserResponse, type ChainedWallet, ChainedWorld } from '../support/chained-world.ts';
import { type FaultMode, Faults } from '../support/faults.ts';

/** More calls than any step makes. */
const MAX_CALLS = 30;

describe('failed call during an upstream login', () => {
  let world: ChainedWorld;
  let wallet: ChainedWallet;
  let token: string;
  let faults: Faults;

  before(async () => {
    world = await ChainedWorld.start(['acme']);
    ({ token, wallet } = await world.createIssuingTenant('acme'));
    faults = new Faults(world.service.service);
  });
  after(() => world.close());

  const asking = (confirmUnverifiedWallets: boolean) => world.configure(token, { upstream: world.upstream(), confirmUnverifiedWallets });

  /** Steps whose answer, when nothing fails, brings the browser to the wallet with a code. */
  const courses: Readonly<Record<string, () => Promise<() => Promise<BrowserResponse>>>> = {
    'taking the answer of the provider': async () => {
      await asking(false);
      const browser = new Browser();
      const back = await wallet.logIn(world.provider, browser, await wallet.begin({ scope: 'card' }));
      return () => browser.visit(back);
    },
    'taking the approval of the user': async () => {
      await asking(true);
      const browser = new Browser();
      const back = await wallet.logIn(world.provider, browser, await wallet.begin({ scope: 'card' }));
      const page = await browser.visit(back);
      return () => browser.press(page, 'approve');
    },
  };

  for (const [what, begin] of Object.entries(courses)) {
    for (const mode of ['before', 'after'] as const) {
      it(`leaves ${what} before or after a step when the call fails ${mode} its effect`, async () => {
        let n = 1;
        for (; n <= MAX_CALLS; n++) if (!(await sweep(await begin(), n, mode))) break;
        expect(n, 'calls that were broken off').to.be.within(2, MAX_CALLS);
      });
    }
  }

  /** @returns false when the step was over before the n-th call. */
  async function sweep(step: () => Promise<BrowserResponse>, n: number, mode: FaultMode): Promise<boolean> {
    faults.arm(n, mode);
    const broken = await step();
    if (!faults.disarm()) {
      expect(codeOf(broken), `nothing failed: ${broken.text}`).to.be.a('string');
      return false;
    }
    const place = `call ${n}, ${mode}: ${broken.status} ${broken.location}`;
    expect(broken.text + broken.location, place).not.to.match(/fails (before|after)/);
    const again = await step();
    expect(again.status, `${place}, repeated: ${again.text}`).to.be.lessThan(500);
    const codes = [broken, again].map(codeOf).filter((code) => code !== undefined);
    expect(codes.length, `${place}: codes`).to.be.at.most(1);
    for (const code of codes) {
      expect((await wallet.redeemCode(code)).status, place).to.equal(200);
      expect((await wallet.redeemCode(code)).status, `${place}, a second time`).to.equal(400);
    }
    return true;
  }

  const codeOf = ({ location }: BrowserResponse): string | undefined => location?.searchParams.get('code') ?? undefined;
});
