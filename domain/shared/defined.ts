type WithoutUndefined<T> = {
  [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name];
} & {
  [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>;
};

/** Removes undefined properties: `exactOptionalPropertyTypes` distinguishes absent from undefined properties. */
export function defined<T extends object>(members: T): WithoutUndefined<T> {
  const presentEntries = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(presentEntries) as WithoutUndefined<T>;
}
