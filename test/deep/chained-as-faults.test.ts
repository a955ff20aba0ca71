import { expect } from 'chai';
import { Browser, type BrowserResponse, type ChainedWallet, ChainedWorld } from '../support/chained-world.ts';
import { type FaultMode, Faults } from '../support/faults.ts';

/** Upper bound for the number of calls of a step. */
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

  const configureConfirmation = (confirmUnverifiedWallets: boolean) =>
    world.configure(token, { upstream: world.upstream(), confirmUnverifiedWallets });

  /** Steps that, without a fault, redirect the browser to the wallet with a code. */
  const flows: Readonly<Record<string, () => Promise<() => Promise<BrowserResponse>>>> = {
    'taking the answer of the provider': async () => {
      await configureConfirmation(false);
      const browser = new Browser();
      const returnUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
      return () => browser.visit(returnUrl);
    },
    'taking the approval of the user': async () => {
      await configureConfirmation(true);
      const browser = new Browser();
      const returnUrl = await wallet.logIn(world.provider, browser, await wallet.startAuthorization({ scope: 'card' }));
      const page = await browser.visit(returnUrl);
      return () => browser.press(page, 'approve');
    },
  };

  for (const [description, startFlow] of Object.entries(flows)) {
    for (const mode of ['before', 'after'] as const) {
      it(`leaves ${description} before or after a step when the call fails ${mode} its effect`, async () => {
        let n = 1;
        for (; n <= MAX_CALLS; n++) if (!(await sweep(await startFlow(), n, mode))) break;
        expect(n, 'calls that were broken off').to.be.within(2, MAX_CALLS);
      });
    }
  }

  /** Fails the n-th call of a step and repeats the step. @returns false when the step makes fewer calls. */
  async function sweep(step: () => Promise<BrowserResponse>, n: number, mode: FaultMode): Promise<boolean> {
    faults.arm(n, mode);
    const failedResponse = await step();
    if (!faults.disarm()) {
      expect(authorizationCode(failedResponse), `the call did not fail: ${failedResponse.text}`).to.be.a('string');
      return false;
    }
    const callDescription = `call ${n}, ${mode}: ${failedResponse.status} ${failedResponse.location}`;
    expect(failedResponse.text + failedResponse.location, callDescription).not.to.match(/fails (before|after)/);
    const repeatedResponse = await step();
    expect(repeatedResponse.status, `${callDescription}, repeated: ${repeatedResponse.text}`).to.be.lessThan(500);
    const codes = [failedResponse, repeatedResponse].map(authorizationCode).filter((code) => code !== undefined);
    expect(codes.length, `${callDescription}: codes`).to.be.at.most(1);
    for (const code of codes) {
      expect((await wallet.redeemCode(code)).status, callDescription).to.equal(200);
      expect((await wallet.redeemCode(code)).status, `${callDescription}, a second time`).to.equal(400);
    }
    return true;
  }

  const authorizationCode = ({ location }: BrowserResponse): string | undefined => location?.searchParams.get('code') ?? undefined;
});
