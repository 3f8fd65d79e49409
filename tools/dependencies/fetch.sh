# SPDX-License-Identifier: Apache-2.0
#
# Gets source archives for tools/setup, from wherever this machine's apt and pip are told to look, and
# accepts only the pinned ones. An archive put into <cache>/downloads by hand is used as it is, so a
# machine without a network can be set up. Sourced by tools/setup; uses its variables.

# Debian's suite whose source packages are used where none is named, whichever suite this machine runs.
source_suite=trixie

# True when file $1 exists and has SHA-256 $2.
has_checksum() { [[ -f $1 ]] && echo "$2  $1" | sha256sum --check --status; }

# Refuses file $1 unless its SHA-256 is $2.
require_checksum() {
  has_checksum "$1" "$2" ||
    refuse "The SHA-256 of $1 is $(sha256sum <"$1" | cut -d' ' -f1), but $2 is the pinned one."
}

# private_apt <suite> <command...>: apt-get with lists and sources of its own: the system's configuration
# (proxies, keys) applies, and its state stays untouched.
private_apt() {
  local state=$cache/apt/$1
  shift
  apt-get -qq -o Dir::State::Lists="$state/lists" -o Dir::Cache="$state/cache" \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$state/sources" \
    -o Acquire::Languages=none "$@"
}

# Reads the source index of suite $1 from the mirror this machine installs its packages from.
prepare_apt_sources() {
  local suite=$1 state=$cache/apt/$1 codename mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  mirror=$(apt-get indextargets --format '$(CREATED_BY)|$(COMPONENT)|$(RELEASE)|$(CODENAME)|$(REPO_URI)' |
    awk -F'|' -v codename="$codename" '$1 == "Packages" && $2 == "main" &&
      ($3 == codename || $4 == codename) { print $5; exit }')
  [[ -n $mirror ]] ||
    refuse "apt has no source for the component 'main' of this system's release ('$codename')."
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/sources"
  {
    printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\n' "$mirror" "$suite"
    [[ -e $keyring ]] && echo "Signed-By: $keyring"
  } >"$state/sources/source.sources"
  log_step "$cache/logs/apt-sources.log" private_apt "$suite" update
}

# fetch_debian <package> <file name pattern> <target> [<SHA-256> [<suite>]]: downloads one file of a source
# package. Without a checksum the one of apt's signed index is used; the caller pins what it takes out of
# the file.
fetch_debian() {
  local package=$1 pattern=$2 target=$3 pinned=${4:-} suite=${5:-$source_suite}
  [[ -n $pinned ]] && has_checksum "$target" "$pinned" && return
  if [[ ${apt_sources_ready:-} != *" $suite "* ]]; then
    prepare_apt_sources "$suite"
    apt_sources_ready+=" $suite "
  fi
  local address name size checksum
  read -r address name size checksum < <(private_apt "$suite" --print-uris source "$package" 2>/dev/null |
    awk -v pattern="$pattern" '$2 ~ pattern') ||
    refuse "The source package '$package' of Debian '$suite' has no file like '$pattern'."
  log_step "$cache/logs/download.log" /usr/lib/apt/apt-helper download-file "${address//\'/}" \
    "$target" "${pinned:+SHA256:}${pinned:-$checksum}"
}

# fetch_python <requirement> <file name> <SHA-256> [<module>]: downloads a source distribution. pip asks its build
# for its name and version; where a module is named, which is that build, metadata_backend.py answers instead.
fetch_python() {
  local requirement=$1 name=$2 pinned=$3 module=${4:-} folder=$cache/build/sdist isolation=() packages
  has_checksum "$cache/downloads/$name" "$pinned" && return
  rm -rf "$folder"
  log_step "$cache/logs/venv.log" "$base_python" -m venv "$folder"
  if [[ -n $module ]]; then
    isolation=(--no-build-isolation)
    packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    mkdir -p "$packages/${module//.//}"
    cp "$tree/tools/dependencies/metadata_backend.py" "$packages/${module//.//}/__init__.py"
  fi
  log_step "$cache/logs/download.log" "$folder/bin/python" -m pip download --disable-pip-version-check \
    --no-deps "${isolation[@]}" --no-binary "${requirement%%=*}" --dest "$folder" "$requirement"
  [[ -f $folder/$name ]] || refuse "pip offers no source distribution '$name'."
  mv "$folder/$name" "$cache/downloads/$name"
  rm -rf "$folder"
  require_checksum "$cache/downloads/$name" "$pinned"
}
