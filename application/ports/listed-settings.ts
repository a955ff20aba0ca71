export const SETTING_SOURCES = ['environment', 'file', 'default'] as const;

/** One setting of the service, without what is secret in it. */
export type ListedSetting = {
  readonly name: string;
  /** Null for a secret, and where there is none. */
  readonly value: string | null;
  readonly isSet: boolean;
  readonly isSecret: boolean;
  /** `file`: what the first start generated, or the file that says where keys live. */
  readonly source: (typeof SETTING_SOURCES)[number];
  readonly description: string;
};

/** How the service was set at its start. */
export abstract class ListedSettings {
  /** In the order of the manual. */
  abstract readonly all: readonly ListedSetting[];
}
