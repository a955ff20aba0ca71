import type { Page } from 'playwright-core';
import { heardOf, press } from './keyboard.ts';

/** Plays the playground once: a card is collected, shown, and shown with a claim that was changed. */
export async function play(page: Page): Promise<void> {
  await press(page, 'Begin');
  await press(page, 'Offer a diploma');
  await press(page, 'Open in the phone (Offer: Diploma)');
  await press(page, 'Add', '#phone');
  await heardOf(page, /now in this phone/);
  await press(page, 'Ask: which degree?');
  await press(page, 'Open in the phone (Which degree?)');
  await press(page, 'Show');
  await heardOf(page, /Verified\./);
  await press(page, 'Ask: which degree?');
  await press(page, 'Open in the phone (Which degree? (2))');
  await page.getByRole('combobox', { name: 'Misbehave' }).selectOption('changed-claim');
  await press(page, 'Cheat');
  await heardOf(page, /Refused\./);
}
