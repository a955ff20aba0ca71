type WithoutUndefined<T> = {
  [Name in keyof T as undefined extends T[Name] ? never : Name]: T[Name];
} & {
  [Name in keyof T as undefined extends T[Name] ? Name : never]?: Exclude<T[Name], undefined>;
};

/** The members that have a value: `exactOptionalPropertyTypes` tells an absent member from an undefined one. */
export function defined<T extends object>(members: T): WithoutUndefined<T> {
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as WithoutUndefined<T>;
}
