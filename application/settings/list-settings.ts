import { z } from 'zod';
import type { Caller } from '../caller.ts';
import { needs } from '../needs.ts';
import { type ListedSetting, ListedSettings, SETTING_SOURCES } from '../ports/listed-settings.ts';

export const SettingsQuery = z.object({
  q: z.string().min(1).max(200).optional().describe('Only settings with this text in their name, value or description, case-insensitive'),
  source: z.enum(SETTING_SOURCES).optional().describe('Only settings with this source'),
});
export type SettingsQuery = z.infer<typeof SettingsQuery>;

/** Lists the settings that the service was started with, for its operator. */
export class ListSettings extends needs({ listedSettings: ListedSettings }) {
  /** @returns matching settings, in the order of the manual; secrets without their values. */
  async execute(_caller: Caller, { q, source }: SettingsQuery): Promise<readonly ListedSetting[]> {
    const searchText = q?.toLowerCase();
    return this.ports.listedSettings.all.filter(
      (setting) =>
        (source === undefined || setting.source === source) && (searchText === undefined || textOf(setting).includes(searchText)),
    );
  }
}

function textOf({ name, value, description }: ListedSetting): string {
  return `${name}\n${value ?? ''}\n${description}`.toLowerCase();
}
