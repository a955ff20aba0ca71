import { z } from 'zod';
import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import { type ListedSetting, ListedSettings, SETTING_SOURCES } from '../ports/listed-settings.ts';

export const SettingsQuery = z.object({
  q: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Only settings with this in their name, value or description, in capitals or not'),
  source: z.enum(SETTING_SOURCES).optional().describe('Only settings whose value comes from there'),
  sort: z
    .enum(['manual', 'name', '-name'])
    .default('manual')
    .describe('`manual` is the order of docs/settings.md'),
});
export type SettingsQuery = z.infer<typeof SettingsQuery>;

/** What the service was started with, for whoever runs it. There are as many settings as the manual has, so one page holds all. */
export class ListSettings extends needs({ listedSettings: ListedSettings }) {
  /** @returns settings that fit; of secrets only whether they are set. */
  async execute(_caller: Caller, { q, source, sort }: SettingsQuery): Promise<readonly ListedSetting[]> {
    const wanted = q?.toLowerCase();
    const found = this.ports.listedSettings.all.filter(
      (setting) =>
        (source === undefined || setting.source === source) &&
        (wanted === undefined || textOf(setting).includes(wanted)),
    );
    if (sort === 'manual') return found;
    const sign = sort === 'name' ? 1 : -1;
    return found.toSorted((one, other) => (one.name < other.name ? -sign : sign));
  }
}

function textOf({ name, value, description }: ListedSetting): string {
  return `${name}\n${value ?? ''}\n${description}`.toLowerCase();
}
