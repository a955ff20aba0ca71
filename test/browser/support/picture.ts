import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { Page } from 'playwright-core';

/**
 * The picture of a page in the documents. `TAKE_PICTURES=1` takes it; otherwise it has to be there, since fonts differ from
 * machine to machine.
 */
export async function picture(page: Page, name: string): Promise<void> {
  const path = fileURLToPath(new URL(`../../../docs/images/${name}.png`, import.meta.url));
  if (process.env['TAKE_PICTURES'] === '1') await page.screenshot({ path });
  expect(existsSync(path), `TAKE_PICTURES=1 npm run test:browser makes ${name}.png`).to.equal(true);
}
